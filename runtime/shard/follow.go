// SPDX-License-Identifier: Apache-2.0

package shard

import "time"

// A record can be deleted by hand, and be written anew by a replica that does not know the deleted one. Meanwhile, another replica that is
// cut off may run slots of the deleted record. Therefore each lease names the record that its replica follows, and
//
//   - a replica opens a slot only if it has read its own lease with the record's ID, and the record, in one snapshot. So the lease was
//     written before the record was deleted.
//   - a replica creates a record, or opens a slot, only if no other living replica follows another record.
//
// Snapshots have the order of writes. So a snapshot with a new record has the leases of all replicas that may still run slots of the deleted
// one, unless they were deleted by hand, too: see follow.

// follows reports whether the replica may open slots of the record.
func (c *Core) follows(now time.Time) bool {
	own := c.members[c.id]
	return own != nil && own.State.Record == c.record.ID && c.agreed(now, c.record.ID)
}

// agreed reports whether no other living replica follows another record.
func (c *Core) agreed(now time.Time, record string) bool {
	for s := range c.others(now) {
		if s.State.Record != "" && s.State.Record != record {
			return false
		}
	}
	return true
}

// follow returns the ID of the record that the lease of this replica should name, empty if there is none. If the lease of a replica that
// follows a deleted record was deleted, too, this lease stands in for it: replicas that join now know of no other.
func (c *Core) follow(now time.Time) (id string) {
	if !c.holds(opening) {
		for s := range c.others(now) {
			if s.gone && (c.record == nil || s.State.Record != c.record.ID) {
				id = max(id, s.State.Record)
			}
		}
	}
	if id == "" && c.record != nil {
		id = c.record.ID
	}
	return id
}
