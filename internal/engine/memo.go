// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/internal/memo"
)

// newMemo returns the memo of runs, or nil if no run may be skipped. A dry run or an audit
// writes nothing, so its runs cannot be remembered.
func (c *Controller) newMemo() *memo.Memo {
	o := &c.opts
	if o.Memo == "" || o.Memo == v1alpha1.MemoOff || o.dryRun() != kubeapi.DryRunNone || o.Audit != nil {
		return nil
	}
	subjects := subjects{Controller: c}
	cfg := memo.Config{Subject: subjects.of, Children: c.children, Answer: c.answer, Version: c.cache.Version, Logger: c.log.With("controller", c.name)}
	if o.Memo != v1alpha1.MemoMemory {
		cfg.Path, cfg.Key = memo.File(o.Memo, c.name), c.shared.CacheKey
	}
	return memo.New(cfg)
}

// children yields the objects that the owner controls and that are watched as owned. A changed epoch counts
// as another child: the versions of an earlier one are void.
func (c *Controller) children(owner abi.Key, uid string, yield func(uid, resourceVersion string)) {
	if epoch := c.cache.Epoch(); epoch > 0 {
		yield("epoch", strconv.FormatUint(epoch, 10))
	}
	c.cache.Children(owner, uid, func(_ schema.GroupVersionResource, _ abi.Key, uid, resourceVersion string) bool {
		yield(uid, resourceVersion)
		return true
	})
}

// answer answers a cache operation in the same way as during a run.
func (c *Controller) answer(ctx context.Context, revision uint64, op abi.Op, req []byte) abi.Response {
	return c.rollout.APIOf(revision).WithObserver(nil).Call(ctx, op, req)
}

// subjects returns what determines the result of a run besides its object. It is safe for
// concurrent use.
type subjects struct {
	*Controller

	mu   sync.Mutex
	last memo.Subject // guarded by mu
}

// of returns the live module and its settings; it returns false for an object of the
// canary.
func (s *subjects) of(key abi.Key) (memo.Subject, bool) {
	m := s.Module
	revision := m.Revision()
	values, number := m.Settings()
	if s.rollout.RevisionOf(key) != revision {
		return memo.Subject{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.Revision != revision || s.last.Settings != number {
		digest := m.Digest()
		if m.Revision() != revision { // the digest may be that of the next revision
			return memo.Subject{}, false
		}
		// The text includes the cache key, so that the hash does not reveal the settings.
		text := fmt.Appendf(slices.Clone(s.shared.CacheKey), "\n%s\n%s\n%s\n%s\n", build(), s.name, s.kind, digest)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			text = fmt.Appendf(text, "%q=%q\n", name, values[name])
		}
		s.last = memo.Subject{Revision: revision, Settings: number, Digest: sha256.Sum256(text)}
	}
	return s.last, true
}

// build identifies this build of the program: another build may behave differently in a
// run.
var build = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.String()
	}
	return ""
})
