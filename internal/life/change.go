// SPDX-License-Identifier: Apache-2.0

package life

import (
	"fmt"

	"github.com/wasmctl/wasmctl/internal/humanize"
)

// Actions of the table: of the revisions of a controller that runs.

// begin starts the preparation of a request's revision.
func (c *Core) begin(ev *Event) {
	c.changes = append(c.changes, Change{ID: ev.ID, Kind: ev.Kind, Digest: ev.Digest, To: ev.Number, Canary: ev.Canary, Force: ev.Force, Why: ev.Why})
	c.prepare(ev)
}

// wantModule swaps the wanted module in, unless it was wanted before.
func (c *Core) wantModule(ev *Event) {
	c.asked = ev.Digest
	if ev.Digest == c.given && !ev.Force {
		c.answer(ev)
		return
	}
	c.given = ev.Digest
	if isForbidden(c, ev) {
		c.reply(ev.ID, Bad, nil, 0)
		return
	}
	swap := *ev
	swap.Kind = Swap
	c.take(&swap)
}

// configured goes on with the wanted module once it has the wanted settings.
func (c *Core) configured(ev *Event) {
	if ev.Outcome != OK {
		c.reply(ev.ID, ev.Outcome, ev.Err, 0)
		return
	}
	c.wantModule(ev)
}

func (c *Core) sameCanary(ev *Event) { c.reply(ev.ID, Same, nil, c.canary.Number) }

// forbidden refuses a module that was rolled back.
func (c *Core) forbidden(ev *Event) {
	c.learn(ev)
	if ev.Kind == Led {
		c.reply(ev.ID, Bad, ev.Err, 0)
		return
	}
	c.refuseBad(ev.ID, ev.Digest)
}

// dismiss refuses a module that was rolled back while its preparation was interrupted.
func (c *Core) dismiss(*Event) {
	ch := c.pop()
	c.refuseBad(ch.ID, ch.Digest)
}

func (c *Core) refuseBad(id uint64, digest string) {
	err := fmt.Errorf("module %s was rolled back: %s; to swap it in again, change it or use wasmctl swap --force", humanize.Digest(digest), c.bad[digest])
	c.report(Refused, Revision{Digest: digest}, err.Error())
	c.reply(id, Bad, err, 0)
}

// supersede goes on with the request that interrupted a preparation. If it is about another
// module, it supersedes all prepared changes.
func (c *Core) supersede(*Event) {
	if !c.first.Kind.replaces() {
		return
	}
	for len(c.changes) > 0 {
		c.reply(c.pop().ID, Superseded, nil, 0)
	}
}

// refuse ends a change whose revision cannot be used.
func (c *Core) refuse(ev *Event) {
	ch := c.pop()
	if ch.Kind == Swap {
		c.emit(Effect{Kind: Report, Result: Refused, Digest: ch.Digest, Reason: ev.Err.Error(), Err: ev.Err})
	}
	c.reply(ch.ID, ev.Outcome, ev.Err, 0)
}

// same ends a swap to the live module: it ends the canary.
func (c *Core) same(ev *Event) {
	c.endCanary(CanaryReplaced, "the live module was swapped in again")
	c.reply(c.pop().ID, Same, ev.Err, 0)
}

func (c *Core) shadow(ev *Event) { c.reply(c.pop().ID, OK, nil, ev.Number) }

// startCanary makes the prepared revision run some of the objects.
func (c *Core) startCanary(ev *Event) {
	c.endCanary(CanaryReplaced, "another module was swapped in")
	ch := c.pop()
	c.canary, c.on = Revision{ev.Number, ev.Digest}, ch.Canary
	c.emit(Effect{Kind: Canary, ID: ch.ID, Change: ch})
	c.report(CanaryStarted, c.canary, ch.Why)
	c.reply(ch.ID, OK, nil, ev.Number)
}

// endCanary gives the objects of the canary, if there is one, to the live revision.
func (c *Core) endCanary(result Result, reason string) {
	was := c.canary
	if was.Number == 0 {
		return
	}
	c.canary, c.on = Revision{}, ""
	if result == CanaryFailed {
		c.forbid(was.Digest, reason)
	}
	c.emit(Effect{Kind: EndCanary, Number: was.Number, Digest: was.Digest, Result: result, Reason: reason})
	c.report(result, was, reason)
}

// canaryFailed ends the canary, and asks for the verdict on the live revision.
func (c *Core) canaryFailed(ev *Event) {
	c.endCanary(CanaryFailed, ev.Canaries.Reason)
	if ev.Kind == Recalled {
		c.recall(&Event{Kind: Follow, ID: ev.ID})
		return
	}
	c.emit(Effect{Kind: Judge})
}

func (c *Core) misfit(ev *Event) { c.endCanary(CanaryFailed, ev.Err.Error()) }

func (c *Core) abort(ev *Event) {
	c.endCanary(CanaryAborted, ev.Why)
	c.answer(ev)
}

// promoteCanary makes the canary live: for a user, or because its time is over.
func (c *Core) promoteCanary(ev *Event) {
	ch := Change{ID: ev.ID, Kind: Promote, Why: ev.Why}
	if ev.Kind == Judged {
		ch.Why = "the canary time has passed"
	}
	c.changes = append(c.changes, ch)
	c.emit(Effect{Kind: Activate, Change: ch})
}

// unpromoted ends a canary that cannot become live, unless a user may try again.
func (c *Core) unpromoted(ev *Event) {
	ch := c.pop()
	if ch.ID == 0 {
		c.endCanary(CanaryFailed, ev.Err.Error())
	}
	c.reply(ch.ID, ev.Outcome, ev.Err, 0)
}

// promoted goes on with a revision that became live.
func (c *Core) promoted(ev *Event) {
	ch, before := c.pop(), c.live
	c.live = Revision{ev.Number, ev.Digest}
	if !ev.OnTrial {
		c.proven = ev.Number
		c.emit(Effect{Kind: Prove, Number: ev.Number, Digest: ev.Digest})
	}
	switch ch.Kind {
	case Promote:
		c.canary, c.on = Revision{}, ""
		c.report(CanaryPromoted, c.live, ch.Why)
	case Rollback:
		c.report(RolledBackByUser, c.live, ch.Why)
	case Follow:
		c.report(RolledBack, c.live, ch.Why)
	case Judged:
		c.emit(Effect{Kind: Bury, Number: before.Number, Digest: before.Digest, Reason: ch.Why})
		// After several swaps, the live module is not that of the revision before.
		c.report(RolledBack, before, backText(ch.Why, c.live))
	default:
		c.report(Swapped, c.live, ch.Why)
	}
	c.reply(ch.ID, OK, nil, ev.Number)
}

// rollBack goes back to the proven revision: the live one does worse.
func (c *Core) rollBack(ev *Event) {
	c.learn(ev)
	reason := ev.Lives.Reason
	c.forbid(c.live.Digest, reason)
	c.emit(Effect{Kind: Fail, Number: c.live.Number, Digest: c.live.Digest, Reason: reason})
	c.changes = append(c.changes, Change{ID: ev.ID, Kind: Judged, To: c.proven, Why: reason})
	c.prepare(ev)
}

// followBack rolls back to the previous revision, because another replica has done so.
func (c *Core) followBack(ev *Event) {
	c.forbid(c.live.Digest, ev.Lives.Reason)
	c.changes = append(c.changes, Change{ID: ev.ID, Kind: Follow, Why: ev.Lives.Reason})
	c.prepare(ev)
}

// prepareOlder rolls back to the previous revision, because the proven one is no longer
// kept after several swaps.
func (c *Core) prepareOlder(ev *Event) {
	c.top().To = 0
	c.prepare(ev)
}

// stuck stays with a revision that failed.
func (c *Core) stuck(ev *Event) {
	ch := c.pop()
	c.proven = c.live.Number
	c.emit(Effect{Kind: Stay, Number: c.live.Number, Digest: c.live.Digest, Reason: ch.Why, Err: ev.Err})
	c.report(Stuck, c.live, ch.Why)
	c.reply(ch.ID, OK, nil, c.live.Number)
}

// prove makes the live revision the one to roll back to.
func (c *Core) prove(*Event) {
	c.proven = c.live.Number
	delete(c.bad, c.live.Digest) // it was tried again, and passed
	c.emit(Effect{Kind: Prove, Number: c.live.Number, Digest: c.live.Digest})
}

// led records which module is live when this replica becomes the leader.
func (c *Core) led(ev *Event) {
	c.learn(ev)
	if !c.onTrial() && ev.Digest != c.live.Digest {
		c.emit(Effect{Kind: Prove, Number: c.live.Number, Digest: c.live.Digest})
	}
	c.answer(ev)
}
