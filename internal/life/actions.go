// SPDX-License-Identifier: Apache-2.0

package life

import (
	"cmp"
	"fmt"

	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Actions of the table: of loading and of the end.

func (c *Core) load(*Event)            { c.emit(Effect{Kind: Load, Digest: c.next}) }
func (c *Core) loadPrevious(ev *Event) { c.emit(Effect{Kind: Load, Digest: ev.Digest}) }
func (c *Core) explain(ev *Event)      { c.Message = ev.Why }
func (c *Core) answer(ev *Event)       { c.reply(ev.ID, OK, nil, c.live.Number) }
func (c *Core) busy(ev *Event)         { c.reply(ev.ID, Busy, nil, 0) }
func (c *Core) noCanary(ev *Event)     { c.reply(ev.ID, NoCanary, nil, 0) }
func (c *Core) takeFirst(*Event)       { ev := c.first; c.first = nil; c.take(ev) }
func (c *Core) prepare(*Event)         { c.emit(Effect{Kind: Prepare, ID: c.top().ID, Change: *c.top()}) }

func (c *Core) recall(ev *Event) {
	c.emit(Effect{Kind: Recall, ID: ev.ID, Change: Change{Kind: ev.Kind}})
}

func (c *Core) activate(ev *Event) {
	c.endCanary(CanaryReplaced, "another module was swapped in")
	c.emit(Effect{Kind: Activate, Change: *c.top()})
}
func (c *Core) cut(ev *Event) { first := *ev; c.first = &first; c.emit(Effect{Kind: Cut}) }

// cutToJudge interrupts a preparation, so that the revisions are judged again.
func (c *Core) cutToJudge(*Event) { c.cut(&Event{Kind: Tick}) }

// tried records the module that was loaded.
func (c *Core) tried(ev *Event) {
	c.revisions = revisions{live: Revision{ev.Number, ev.Digest}, proven: ev.Number}
	c.next, c.given, c.backoff = "", ev.Digest, MinRetry
	c.learn(ev)
}

// learn remembers modules that were rolled back elsewhere or before.
func (c *Core) learn(ev *Event) {
	for digest, reason := range ev.Failed {
		if c.bad[digest] == "" {
			c.forbid(digest, reason)
		}
	}
}

// run starts the loaded module, and then swaps in the one that waits for it.
func (c *Core) run(ev *Event) {
	c.tried(ev)
	c.emit(Effect{Kind: Run})
	if c.then != nil {
		c.then.Canary, c.given = ev.Canary, c.then.Digest
		c.first, c.then = c.then, nil
	}
}

// later arranges for a module to be swapped in once the live one runs again after a restart.
// If there is no live module, or it cannot be loaded, the module is loaded in its place.
func (c *Core) later(ev *Event) {
	c.then = nil
	switch restarts := c.revisions != (revisions{}) || c.last != "" && c.next == c.last; {
	case !restarts || c.Phase == Failed:
		c.next = ev.Digest
	case ev.Digest != cmp.Or(c.live.Digest, c.last):
		c.then = &Event{Kind: Swap, Digest: ev.Digest, Force: ev.Force, Why: ev.Why}
	}
}

// skip gives up the live module, which does not start with the new options, for the module
// that was to follow it.
func (c *Core) skip(why string) {
	c.Message = why
	c.next, c.given, c.then = c.then.Digest, c.then.Digest, nil
}

func (c *Core) loadNext(ev *Event) {
	c.skip(ev.Err.Error())
	c.load(ev)
}

func (c *Core) cutToLoadNext(ev *Event) {
	c.skip(ev.Why)
	c.emit(Effect{Kind: Cut})
}

// fail schedules the next attempt.
func (c *Core) fail(ev *Event) {
	c.Message, c.Retry = ev.Err.Error(), ev.Now.Add(c.backoff)
	c.backoff = min(2*c.backoff, MaxRetry)
	if ev.Digest != "" {
		c.given = ev.Digest
	}
}

// wantAnew ends the current run or attempt, in order to load with other options. Another
// module is swapped in afterwards, with the same stages as without other options.
func (c *Core) wantAnew(ev *Event) {
	if ev.Digest != c.given && !isForbidden(c, ev) {
		c.given = ev.Digest
		c.later(ev)
	}
	c.asked = ev.Digest
	c.reply(ev.ID, OK, nil, 0)
	if c.revisions == (revisions{}) { // nothing runs
		c.emit(Effect{Kind: Cut})
		return
	}
	c.drain(ev)
}

// wantLoaded loads the wanted module in place of the one that could not be loaded.
func (c *Core) wantLoaded(ev *Event) {
	if ev.Digest != c.given {
		c.next, c.given = ev.Digest, ev.Digest
	}
	c.asked, c.backoff = ev.Digest, MinRetry
	c.reply(ev.ID, OK, nil, 0)
	c.load(ev)
}

// drain ends the run and all changes in progress.
func (c *Core) drain(*Event) {
	c.emit(Effect{Kind: Drain})
	c.giveUp()
}

// giveUp refuses all changes in progress.
func (c *Core) giveUp() {
	for len(c.changes) > 0 {
		c.abandon(nil)
	}
	if ev := c.first; ev != nil {
		c.first = nil
		c.take(ev) // it is refused
	}
}

// abandon gives up the change in progress. After a restart, its module is swapped in.
func (c *Core) abandon(*Event) {
	ch := c.pop()
	if ch.Kind == Swap && c.then == nil {
		c.later(&Event{Digest: ch.Digest, Force: ch.Force, Why: ch.Why})
	}
	c.reply(ch.ID, Ending, nil, 0)
}

// ended gives up the revisions of a run that has ended. A restart goes on with the live
// module.
func (c *Core) ended(*Event) {
	c.giveUp()
	c.next, c.last = c.live.Digest, c.live.Digest
	c.revisions = revisions{}
	c.emit(Effect{Kind: Close})
}

// backText names the module that is live again after a rollback.
func backText(reason string, live Revision) string {
	return fmt.Sprintf("%s; live again, as revision %d: module %s", reason, live.Number, humanize.Digest(live.Digest))
}
