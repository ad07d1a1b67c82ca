// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// maxChanges is the maximum number of recent changes whose runs are remembered.
const maxChanges = 1 << 13

// chains has the recent changes that runs of the controller have made. If an object that a run has changed causes the run of another
// object, both are in one chain. In a loop of several objects, such as two that write to each other, each run of an object is further down
// the chain than its last one. A run that another client has caused begins a new chain.
type chains struct {
	byVersion map[string]change // by Write.ResourceVersion, or by ObjectName for a deleted object
	sweep     int               // the number of changes at which to remove old ones
}

// change is a change that a run has made.
type change struct {
	depth int // the depth of the run, plus one
	at    time.Time
}

// add adds a change, and makes room for it.
func (c *chains) add(version string, made change, maxAge time.Duration) {
	if c.sweep = max(c.sweep, maxChanges/8); len(c.byVersion) >= c.sweep {
		for v, old := range c.byVersion {
			if made.at.Sub(old.at) > maxAge {
				delete(c.byVersion, v)
			}
		}
		for v := range c.byVersion { // any of them will do
			if len(c.byVersion) <= maxChanges*7/8 {
				break
			}
			delete(c.byVersion, v)
		}
		c.sweep = min(2*len(c.byVersion), maxChanges)
	}
	if c.byVersion == nil {
		c.byVersion = map[string]change{}
	}
	c.byVersion[version] = made
}

// Wrote records that the run of a trial has just changed an object. The caller must call it before it can see the result of a run that
// this change causes.
func (g *Guard) Wrote(t *Trial, w *abi.Write, now time.Time) {
	if g.Off() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.chains.add(cmp.Or(w.ResourceVersion, ObjectName(w)), change{t.depth + 1, now}, g.cfg.gap()+g.cfg.MaxDelay)
}

// madeBy returns how far down a chain the run is that a change has caused. It is 0 if no run has made the change.
func (g *Guard) madeBy(version string) (depth int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.chains.byVersion[version].depth
}
