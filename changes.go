// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/rollout/ledger"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// Limits of a history: the number of its changes, and the bytes of each reason.
const (
	maxChanges = 20
	maxWhy     = 1 << 10
)

// changes are the last changes of the module of a controller.
type changes struct {
	mu   sync.Mutex
	list []admin.Change // the oldest first; guarded by mu
	read bool           // whether list has the changes of earlier processes; guarded by mu
}

func (c *changes) all() []admin.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}

// Changed implements engine.Source. With a StateDir, the history survives a restart of the process.
func (l loader) Changed(change *admin.Change) {
	next := *change
	if m, ok := l.modules.get(next.Digest); ok && m.String() != humanize.Digest(next.Digest) {
		next.Module = m.String()
	}
	next.Why = text.Ends(next.Why, maxWhy)
	c, dir := &l.changes, ledger.Dir(l.rt.opts.StateDir)
	c.mu.Lock()
	defer c.mu.Unlock()
	if dir != "" && !c.read {
		c.read = true
		stored, err := dir.History(l.Name())
		if err == nil && stored != nil {
			err = json.Unmarshal(stored, &c.list)
		}
		l.warn("cannot read the history of the module", err)
	}
	if next.Module == "" { // it is that of an earlier revision
		if i := slices.IndexFunc(c.list, func(o admin.Change) bool { return o.Digest == next.Digest }); i >= 0 {
			next.Module = c.list[i].Module
		}
	}
	c.list = append(c.list, next)
	c.list = slices.Delete(c.list, 0, max(0, len(c.list)-maxChanges))
	if dir != "" {
		stored, err := json.Marshal(c.list)
		if err == nil {
			err = dir.SetHistory(l.Name(), stored)
		}
		l.warn("the history of the module will not survive a restart", err)
	}
}

func (l loader) warn(message string, err error) {
	if err != nil {
		l.log.Warn(message, "controller", l.Name(), "error", err.Error())
	}
}
