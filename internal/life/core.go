// SPDX-License-Identifier: Apache-2.0

package life

import (
	"time"
)

// Times between attempts to load: doubled after each failure.
const (
	MinRetry = 5 * time.Second
	MaxRetry = time.Minute
)

// maxBad bounds how many modules that were rolled back are remembered.
const maxBad = 100

// Core decides the life of one controller. It belongs to one goroutine.
type Core struct {
	Phase   Phase
	Message string    // why the controller waits or failed
	Since   time.Time // of the phase and message
	Retry   time.Time // of the next attempt to load, if Phase is Failed

	backoff time.Duration // after the next failure to load
	next    string        // digest of the module to load next; if empty, the source decides
	last    string        // digest of the module that was live when a run ended last
	then    *Event        // the swap to begin once the live module runs again; nil if there is none
	asked   string        // digest of the module that was wanted last
	given   string        // digest of the module that was loaded or swapped in for Want last
	revisions
	changes []Change          // interrupted preparations, then the change in progress
	first   *Event            // the request that interrupted a preparation
	bad     map[string]string // why a module must not be tried again, by digest
	out     []Effect
}

// revisions are the revisions of a running controller.
type revisions struct {
	live   Revision
	proven uint64 // the revision to roll back to; the live one unless that is on probation
	canary Revision
	on     string // which objects the canary runs
}

// NewCore returns the core of a controller that is idle.
func NewCore(now time.Time) *Core {
	return &Core{Phase: Idle, Since: now, backoff: MinRetry, bad: map[string]string{}}
}

// Judging reports whether a revision must be judged.
func (c *Core) Judging() bool {
	return c.Phase.Runs() && (c.live.Number != c.proven || c.canary.Number != 0)
}

// Due reports whether Resume must follow, once no result of an effect is outstanding.
func (c *Core) Due() bool { return c.Phase == Running && (c.first != nil || len(c.changes) > 0) }

// Step returns the effects of an event.
func (c *Core) Step(ev Event) []Effect {
	c.out = nil
	phase, message := c.Phase, c.Message
	c.take(&ev)
	if c.Phase != phase || c.Message != message {
		c.Since = ev.Now
	}
	return c.out
}

// take applies the first matching transition. A request that matches none is refused; other
// events are ignored.
func (c *Core) take(ev *Event) {
	for i := range table {
		if t := &table[i]; t.fits(c, ev) {
			if t.to != "" && t.to != c.Phase {
				c.Phase, c.Message = t.to, ""
			}
			if t.do != nil {
				t.do(c, ev)
			}
			return
		}
	}
	if !ev.Kind.request() {
		return
	}
	switch ev.Kind {
	case Swap:
		c.later(ev)
	case Want:
		if c.asked = ev.Digest; ev.Digest != c.given && !isForbidden(c, ev) {
			c.later(ev)
		}
	default:
	}
	outcome := NotRunning
	if c.Phase == Restarting || c.Phase == Stopping {
		outcome = Ending
	}
	c.reply(ev.ID, outcome, nil, 0)
}

func (c *Core) emit(effects ...Effect) { c.out = append(c.out, effects...) }

func (c *Core) reply(id uint64, outcome Outcome, err error, number uint64) {
	if id != 0 {
		c.emit(Effect{Kind: Reply, ID: id, Outcome: outcome, Err: err, Number: number, OnCanary: number != 0 && number == c.canary.Number})
	}
}

func (c *Core) report(result Result, of Revision, reason string) {
	c.emit(Effect{Kind: Report, Result: result, Number: of.Number, Digest: of.Digest, Reason: reason})
}

// top returns the change in progress.
func (c *Core) top() *Change { return &c.changes[len(c.changes)-1] }

// pop ends the change in progress.
func (c *Core) pop() Change {
	ch := *c.top()
	c.changes = c.changes[:len(c.changes)-1]
	return ch
}

// onTrial reports whether the live revision is on probation.
func (c *Core) onTrial() bool { return c.live.Number != c.proven }

// forbid remembers that a module must not be tried again.
func (c *Core) forbid(digest, reason string) {
	if len(c.bad) < maxBad || c.bad[digest] != "" {
		c.bad[digest] = reason
	}
}
