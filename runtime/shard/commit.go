// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"
	"time"
)

// commit changes the record: it gives closed slots away, and plans.
func (c *Core) commit(now time.Time, effects []Effect, again *time.Time) []Effect {
	if c.busy[Commit] || !c.MayWrite(now) || is(c.stale, c.version) {
		return effects // if the record has another version, it is about to be read
	}
	if now.Before(c.retry) {
		*again = earlier(*again, c.retry)
		return effects
	}
	next := c.next(now, again)
	if next == nil {
		return effects
	}
	next.Epoch++
	gave := c.give(next, now)
	gave = c.wishes.add(next) || gave
	for controller, by := range c.keys {
		if next.Keys[controller] == "" {
			if next.Keys == nil {
				next.Keys = map[string]string{}
			}
			next.Keys[controller], gave = by, true
		}
	}
	// If an earlier commit may still be in progress, commit a record without changes, so that the earlier one fails.
	if planned := c.planned(next, now, again); !gave && !planned && !is(c.doubt, c.version) {
		return effects
	}
	c.busy[Commit], c.wantedAt, c.writing = true, time.Time{}, next
	return append(effects, Effect{Kind: Commit, Record: next, Version: c.version})
}

// next returns the record to change: a copy or, if there is no record, or its number of slots is outdated and no living replica has slots
// of it, a new one. It returns nil if it is too early for a new record, because other replicas may come.
func (c *Core) next(now time.Time, again *time.Time) *Record {
	if c.record != nil && len(c.record.Slots) == c.slots {
		return c.record.clone()
	}
	if c.record != nil {
		members := c.live(now)
		for i := range c.record.Slots {
			owner := c.record.Slots[i].Owner
			if slices.ContainsFunc(members, func(m Replica) bool { return m.ID == owner }) {
				return c.record.clone()
			}
		}
	}
	if c.record == nil && !c.agreed(now, "") {
		return nil
	}
	if early := c.begin.Add(c.timing.Settle / 4); now.Before(early) {
		*again = earlier(*again, early)
		return nil
	}
	fresh := &Record{Slots: make([]Slot, c.slots)}
	if c.record != nil {
		fresh.ID, fresh.Epoch = c.record.ID, c.record.Epoch
	}
	return fresh
}

// give gives closed slots away, once the replica's own lease shows them as closed.
func (c *Core) give(next *Record, now time.Time) (gave bool) {
	for i := range next.Slots {
		s := &next.Slots[i]
		if s.Owner != c.id || i >= len(c.phases) {
			continue
		}
		never := !c.takes() && c.phases[i] <= warm // it was never opened, so its handover is passed on
		if c.phases[i] != closed && !never || c.claims.Has(i) {
			continue
		}
		left := c.left[i]
		if never {
			left = s.Handover
		}
		s.give(c.heir(now, s), next.Epoch, wall(now), left)
		gave = true
	}
	return gave
}

// heir returns the replica that gets a slot, or "" if the slot becomes free.
func (c *Core) heir(now time.Time, s *Slot) string {
	for _, m := range c.live(now) {
		if m.ID == s.Next && m.Takes && m.ID != c.id {
			return m.ID
		}
	}
	return ""
}

// planned plans the slots of the record, if that is needed and it is this replica's turn: the first replica by ID plans at once, and each
// further one later.
func (c *Core) planned(next *Record, now time.Time, again *time.Time) bool {
	members := c.live(now)
	trial := next.clone()
	needed := plan(trial, members, wall(now))
	if !needed && c.record != nil && now.Sub(c.moved) >= relieveEvery {
		needed = relieve(trial, members)
	}
	if !needed {
		c.wantedAt = time.Time{}
		return false
	}
	if c.wantedAt.IsZero() {
		c.wantedAt = now
	}
	rank := slices.IndexFunc(members, func(m Replica) bool { return m.ID == c.id })
	if turn := c.wantedAt.Add(time.Duration(rank) * rankDelay); now.Before(turn) {
		*again = earlier(*again, turn)
		return false
	}
	*next = *trial
	return true
}
