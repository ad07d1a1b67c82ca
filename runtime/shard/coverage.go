// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// SlotState is the state of a slot, as seen by one replica.
type SlotState string

// The states of a slot.
const (
	Here      SlotState = "here"      // this replica runs it
	Elsewhere SlotState = "elsewhere" // one other replica reports that it runs it
	Believed  SlotState = "believed"  // one other replica has reported that it runs it, but its lease is overdue
	Moving    SlotState = "moving"    // its owner is alive, and does not run it yet
	Unowned   SlotState = "unowned"   // no living replica owns it
	Double    SlotState = "double"    // several replicas report that they run it
)

// SlotStates are all states.
var SlotStates = [...]SlotState{Here, Elsewhere, Believed, Moving, Unowned, Double}

// Cover describes which replicas run a slot.
type Cover struct {
	State SlotState
	// By are the replicas that report that they run the slot or, if there is none, its owner.
	By []string
}

// Coverage is the Cover of each slot.
type Coverage []Cover

// Coverage returns what the replica knows about all slots.
func (v *View) Coverage(now time.Time) Coverage {
	out := make(Coverage, v.Slots)
	for i := range out {
		out[i] = v.cover(i, now)
	}
	return out
}

func (v *View) cover(slot int, now time.Time) Cover {
	c, other := Cover{State: Unowned}, Elsewhere
	for i := range v.Leases {
		if l := &v.Leases[i]; l.ID != v.ID && l.Live(now) && l.State.Open.Has(slot) {
			c.By = append(c.By, l.ID)
			if v.Overdue(l, now) {
				other = Believed
			}
		}
	}
	here := v.Own.Open.Has(slot) && !v.Lapsed
	if here {
		c.By = append(c.By, v.ID)
	}
	switch owner := v.owner(slot); {
	case len(c.By) > 1:
		c.State = Double
	case here:
		c.State = Here
	case len(c.By) == 1:
		c.State = other
	case v.lives(owner, now):
		c.State, c.By = Moving, []string{owner}
	}
	return c
}

// owner returns the owner of a slot in the record, or "" if there is none.
func (v *View) owner(slot int) string {
	if v.Record == nil || slot >= len(v.Record.Slots) {
		return ""
	}
	return v.Record.Slots[slot].Owner
}

// lives reports whether a replica is known to be alive.
func (v *View) lives(id string, now time.Time) bool {
	return id != "" && (id == v.ID || slices.ContainsFunc(v.Leases, func(l Lease) bool { return l.ID == id && l.Live(now) }))
}

// speaks reports whether this replica raises the alarm for all: it is the first living one by ID.
func (v *View) speaks(now time.Time) bool {
	return !slices.ContainsFunc(v.Leases, func(l Lease) bool { return l.ID < v.ID && l.Live(now) })
}

// Live reports whether the lease is valid.
func (l *Lease) Live(now time.Time) bool { return !l.Ended && now.Sub(l.Seen) < l.Lasts }

// Overdue reports whether a valid lease should have been renewed in the meantime: its owner may have died.
func (v *View) Overdue(l *Lease, now time.Time) bool { return !l.Heard || now.Sub(l.Seen) > v.Patience }

// StateOf returns the state of the owner of a lease. That of this replica is newer than its lease.
func (v *View) StateOf(l *Lease) *State {
	if l.ID == v.ID {
		return &v.Own
	}
	return &l.State
}

// PeerAge returns the time since the lease of another replica changed, of the one that has not changed for the longest time.
func (v *View) PeerAge(now time.Time) (age time.Duration) {
	for i := range v.Leases {
		if v.Leases[i].ID != v.ID {
			age = max(age, now.Sub(v.Leases[i].Seen))
		}
	}
	return age
}

// Cost is the load of all slots of a replica, per second.
func (s *State) Cost() time.Duration {
	sum := 0
	for _, ms := range s.Load {
		sum += ms
	}
	return time.Duration(sum) * time.Millisecond
}

// Count returns the number of slots in a state.
func (c Coverage) Count(state SlotState) int {
	n := 0
	for i := range c {
		if c[i].State == state {
			n++
		}
	}
	return n
}

// String describes the coverage for people.
func (c Coverage) String() string {
	run := fmt.Sprintf("%d of %d slots are run by one replica each", c.Count(Here)+c.Count(Elsewhere), len(c))
	return strings.Join(append([]string{run}, c.gaps(Unowned, Double, Moving, Believed)...), "; ")
}

// gaps describes the slots in the given states for people.
func (c Coverage) gaps(states ...SlotState) []string {
	var out []string
	for _, state := range states {
		var in slots.Set
		for i := range c {
			in.Put(i, c[i].State == state)
		}
		one, more := gapText(state)
		switch n := in.Len(); {
		case n == 1:
			out = append(out, "slot "+in.String()+" "+one)
		case n > 1:
			out = append(out, "slots "+in.String()+" "+more)
		}
	}
	return out
}

func gapText(state SlotState) (one, more string) {
	switch state {
	case Unowned:
		return "has no owner", "have no owner"
	case Double:
		return "is run by two replicas", "are run by two replicas each"
	case Moving:
		return "is moving", "are moving"
	case Believed:
		return "is believed to be: its replica is overdue", "are believed to be: their replicas are overdue"
	case Here, Elsewhere: // no gap
	}
	return "", ""
}

// alarm detects slots that no replica runs, or that several do.
type alarm struct {
	since []time.Time // by slot: since when it has had no owner
}

// check returns a description of the problems, or "". A slot may have no owner for up to patience.
func (a *alarm) check(now time.Time, c Coverage, patience time.Duration) string {
	if len(a.since) != len(c) {
		a.since = make([]time.Time, len(c))
	}
	wrong := slices.Clone(c)
	for i := range c {
		if c[i].State != Unowned {
			a.since[i] = time.Time{}
			continue
		}
		if a.since[i].IsZero() {
			a.since[i] = now
		}
		if now.Sub(a.since[i]) < patience {
			wrong[i].State = Moving
		}
	}
	return strings.Join(wrong.gaps(Unowned, Double), "; ")
}

// moves counts the slots that a replica has received or given away between two records.
func moves(id string, before, after *Record) (n uint64) {
	had, has := before.OwnedBy(id), after.OwnedBy(id)
	for slot := range slots.Max {
		if had.Has(slot) != has.Has(slot) {
			n++
		}
	}
	return n
}

// OwnedBy returns the slots of a replica; none if r is nil.
func (r *Record) OwnedBy(id string) (owned slots.Set) {
	if r != nil {
		for i := range r.Slots {
			owned.Put(i, r.Slots[i].Owner == id)
		}
	}
	return owned
}
