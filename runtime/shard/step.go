// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"maps"
	"slices"
	"time"
)

// Intervals between actions of replicas.
const (
	// rankDelay is how much later than the previous replica each one changes the record, so that only one of them does.
	rankDelay = 300 * time.Millisecond
	// relieveEvery is the minimum time between changes of the record because of load.
	relieveEvery = time.Minute
	// minGap is the minimum time between two writes of the replica's own lease.
	minGap = 50 * time.Millisecond
)

// Step returns the effects to carry out now, and the latest time to call it again. It must be called after everything that was read and
// every effect that has ended.
func (c *Core) Step(now time.Time) (effects []Effect, again time.Time) {
	if c.lost {
		return nil, time.Time{}
	}
	again = now.Add(c.timing.Renew / 4)
	if c.record != nil && len(c.record.Slots) == len(c.phases) {
		for i := range c.phases {
			effects = c.slot(now, i, effects)
		}
	}
	effects = c.renew(now, effects, &again)
	effects = c.fence(now, effects, &again)
	effects = c.commit(now, effects, &again)
	return effects, again
}

// slot advances one slot by a step.
func (c *Core) slot(now time.Time, i int, effects []Effect) []Effect {
	s := &c.record.Slots[i]
	mine := s.Owner == c.id
	do := func(next phase, e Effect) {
		e.Slot = i
		c.phases[i] = next
		effects = append(effects, e)
	}
	switch c.phases[i] {
	case idle:
		if (mine || s.Next == c.id) && c.takes() {
			do(warming, Effect{Kind: Warm})
		}
	case warm:
		switch {
		case mine && c.takes() && c.MayWrite(now) && c.follows(now):
			do(opening, Effect{Kind: Open, Handover: s.Handover, Gained: c.gained[i]})
		case !mine && s.Next != c.id:
			do(cooling, Effect{Kind: Cool})
		}
	case open:
		if mine && c.gives(now, s, i) {
			do(closing, Effect{Kind: Close})
		}
	case closed:
		switch {
		case !mine:
			do(cooling, Effect{Kind: Cool})
			c.left[i] = nil
		case !c.gives(now, s, i) && !c.busy[Commit] && !is(c.doubt, c.version): // no replica wants it any more
			do(opening, Effect{Kind: Open, Handover: c.left[i], Gained: c.gained[i]})
			c.left[i] = nil
		}
	case cooling, warming, opening, closing: // until Done
	}
	if p := c.phases[i]; !mine && p >= opening {
		c.lost = true // the record was changed by something other than the protocol
	}
	return effects
}

// is reports whether of is this version.
func is(of *string, version string) bool { return of != nil && *of == version }

// gives reports whether the replica should close a slot that it owns, for another replica.
func (c *Core) gives(now time.Time, s *Slot, i int) bool {
	if s.Next != "" && s.Next != c.id {
		if to := c.members[s.Next]; to != nil && to.State.Warm.Has(i) && !to.gone && !to.Ended {
			return true
		}
	}
	if c.leaving.IsZero() {
		return c.phases[i] == closed && s.Next != "" && s.Next != c.id
	}
	alone := !slices.ContainsFunc(c.live(now), func(m Replica) bool { return m.Takes })
	return c.hurry || alone || now.Sub(c.leaving) > c.timing.Settle
}

// state returns the state to publish.
func (c *Core) state(now time.Time) State {
	s := State{Takes: c.takes(), Record: c.follow(now), Load: c.load, Summary: c.summary}
	for i, p := range c.phases {
		s.Warm.Put(i, p >= warm)
		s.Open.Put(i, p >= opening && p < closed)
	}
	return s
}

// renew renews the lease, or updates it if the state has changed.
func (c *Core) renew(now time.Time, effects []Effect, again *time.Time) []Effect {
	s := c.state(now)
	due := c.tried.Add(c.timing.Renew)
	if c.failed {
		due = c.tried.Add(c.timing.Renew / 4)
	}
	if s.Takes != c.said.Takes || s.Record != c.said.Record || s.Warm != c.said.Warm || s.Open != c.said.Open {
		due = c.tried.Add(minGap)
	}
	if c.busy[Renew] {
		return effects
	}
	if now.Before(due) && !c.tried.IsZero() {
		*again = earlier(*again, due)
		return effects
	}
	c.busy[Renew], c.tried, c.saying = true, now, s
	c.claims.Add(s.Open)
	return append(effects, Effect{Kind: Renew, State: s})
}

// fence ends the lease of one replica that has been silent for its whole duration, or deletes that of one that has ended.
func (c *Core) fence(now time.Time, effects []Effect, again *time.Time) []Effect {
	if c.busy[Fence] || !c.MayWrite(now) {
		return effects
	}
	for _, id := range slices.Sorted(maps.Keys(c.members)) {
		s := c.members[id]
		if id == c.id || s.gone || s.Ended && c.refersTo(id) {
			continue
		}
		over := s.since.Add(max(s.Lasts, c.timing.Lease))
		if now.Before(over) {
			*again = earlier(*again, over)
			continue
		}
		c.busy[Fence] = true
		kind := Fence
		if s.Ended {
			kind = Forget
		}
		return append(effects, Effect{Kind: kind, ID: id, Version: s.Version})
	}
	return effects
}

// refersTo reports whether a replica has a slot, or will get one.
func (c *Core) refersTo(id string) bool {
	return c.record == nil || slices.ContainsFunc(c.record.Slots, func(s Slot) bool { return s.Owner == id || s.Next == id })
}

// Done passes in the result of an effect.
func (c *Core) Done(now time.Time, e Effect, r Result) {
	switch e.Kind {
	case Renew:
		c.busy[Renew] = false
		c.failed = r.Err
		if r.Lost {
			c.lost = true
		} else if !r.Err {
			c.heardFrom(now)
			c.renewed, c.said, c.claims = c.tried, c.saying, c.saying.Open
		}
	case Fence, Forget:
		c.busy[Fence] = false
		if s := c.members[e.ID]; s != nil && s.Version == e.Version {
			s.Ended = s.Ended || !r.Err && !r.Lost
			s.since = now.Add(c.timing.Renew/2 - max(s.Lasts, c.timing.Lease)) // when to try again
		}
	case Commit:
		c.busy[Commit] = false
		switch {
		case r.Lost && e.Version != "":
			c.stale = &e.Version
		case r.Err || e.Version == "": // a new record is taken when it is read, which tells its ID
			c.doubt, c.retry = &e.Version, now.Add(c.timing.Renew/4)
		case c.record != nil && c.writing.Epoch > c.record.Epoch: // otherwise it was read before the response came
			c.take(now, c.writing, r.Version)
		}
		c.writing = nil
	case Warm:
		c.phases[e.Slot] = warm
	case Open:
		c.phases[e.Slot] = open
	case Close:
		c.phases[e.Slot], c.left[e.Slot] = closed, r.Handover
	case Cool:
		c.phases[e.Slot] = idle
	}
}

// heardFrom takes into account that the API server has answered. If it had not for long, the silence of other replicas means nothing: each of
// them then has the duration of its lease to renew it.
func (c *Core) heardFrom(now time.Time) {
	if c.renewed.IsZero() || now.Sub(c.renewed) < c.timing.Lease/2 {
		return
	}
	for _, s := range c.members {
		if !s.gone {
			s.since = now
		}
	}
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// wall returns a time for people.
func wall(now time.Time) time.Time { return now.UTC().Truncate(time.Millisecond) }
