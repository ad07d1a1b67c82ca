// SPDX-License-Identifier: Apache-2.0

package shard

import "time"

// Rejoin returns the core with which a replica that has lost its lease takes part again under a new ID, after all of its runs have ended. So
// the replica of the former ID is known to be dead, and its lease is ended at once. Its slots are still watched. Rejoin returns nil if the
// watches are of another number of slots.
func (c *Core) Rejoin(id string, now time.Time) *Core {
	if c.record != nil && len(c.record.Slots) != len(c.phases) {
		return nil
	}
	next := NewCore(id, c.slots, c.timing, now)
	next.former, next.known = c.id, c.known
	next.ready, next.leaving, next.hurry, next.keys, next.load, next.summary, next.wishes = c.ready, c.leaving, c.hurry, c.keys, c.load, c.summary, c.wishes
	next.phases, next.left, next.gained = make([]phase, len(c.phases)), make([]map[string]Handover, len(c.phases)), make([]Gained, len(c.phases))
	for i, p := range c.phases {
		if p >= warming {
			next.phases[i] = warm
		}
	}
	for id, s := range c.members { // one whose lease was deleted by hand may not have noticed
		if s.gone && id != c.id && id != c.former {
			next.members[id] = s
		}
	}
	return next
}
