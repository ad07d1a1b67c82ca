// SPDX-License-Identifier: Apache-2.0

// Package shard distributes objects over the replicas of a process. Objects are assigned to slots by a hash, and the objects of each slot are
// run by one replica, as specified in a Record that all replicas share. Each replica has a Lease; when it ends, its slots become free.
//
//	Member    one replica: carries out the decisions of its Core
//	Core      decides what one replica does; has no clock and does no I/O
//	plan      decides which replica should have which slot
//
// docs/scale.md describes the protocol.
package shard

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// Timing is a set of durations. All are measured by a replica's own clock.
type Timing struct {
	// Lease is how long the others wait for a silent replica.
	Lease time.Duration
	// Renew is how often a replica renews its lease.
	Renew time.Duration
	// Settle is how long the first replica waits for others before it takes slots, and how long a stopping replica waits until others are
	// warm.
	Settle time.Duration
}

// validity is how long a replica may write after it sent a renewal that succeeded. The rest of the lease allows for requests in flight, and
// for clocks that run at different rates.
func (t Timing) validity() time.Duration { return t.Lease * 9 / 10 }

// phase is the phase of a slot in a replica.
type phase uint8

const (
	idle    phase = iota // not watched
	cooling              // its watches are ending
	warming              // its watches are syncing
	warm                 // its watches have synced
	opening              // the cache is catching up with the previous owner
	open                 // its objects are run
	closing              // its runs are ending
	closed               // no run is left; it is to be given away
)

// Kind is the kind of an Effect.
type Kind uint8

// The kinds of effects. Of Renew, of Commit, and of Fence and Forget together, one is carried out at a time.
const (
	Renew  Kind = iota // write State to the replica's own lease
	Fence              // end the lease of another replica, if it still has Version
	Commit             // write Record, if the stored one still has Version
	Forget             // delete the lease of a replica that has ended, if it still has Version
	Warm               // start the watches of Slot, and wait until they have synced
	Open               // wait until the cache includes Handover, or everything from before Since, then run Slot
	Close              // let the runs of Slot end
	Cool               // stop the watches of Slot
)

// Effect is something to do outside of the core. Its result is passed to Done.
type Effect struct {
	Kind     Kind
	Slot     int
	ID       string // of the replica to fence
	Version  string
	State    State
	Record   *Record
	Handover map[string]Handover
	Gained   Gained
}

// Result is the result of an effect.
type Result struct {
	// Err means that the outcome is unknown; Lost means that the version was not the expected one.
	Err, Lost bool
	Version   string              // after Commit
	Handover  map[string]Handover // after Close
}

// Core decides what one replica does. It has no clock and does no I/O: its owner passes in what was read and which effects have ended, and
// carries out new effects. It belongs to one goroutine.
//
// Its safety rests on three rules. Only the owner of a slot can give it away, and only after its runs have ended. A replica that takes the
// slots of a dead one must first end the dead one's lease, which fails if the lease was renewed meanwhile. And a replica stops writing
// before its lease can be ended. A replica that could not renew its lease for longer than it lasts still has its slots if it can renew it
// later. A fourth rule covers a record that was deleted: see follows.
type Core struct {
	id     string
	former string // its ID before it lost its lease; empty if it has not
	timing Timing
	begin  time.Time

	slots   int     // of a new record
	record  *Record // as last read or written; nil if there is none
	version string  // of the record
	read    bool    // the record existed at the last call of Saw
	known   bool    // a record has existed
	moved   time.Time
	members map[string]*seen

	phases  []phase
	left    []map[string]Handover // of closed slots
	gained  []Gained              // how this replica got each slot
	said    State                 // as last written
	claims  slots.Set             // the slots that the replica's own lease may show as open
	renewed time.Time             // when the last successful renewal was sent
	tried   time.Time             // when the last renewal was sent
	failed  bool                  // it failed
	leaving time.Time             // zero unless the replica is leaving
	load    map[int]int
	summary Summary
	keys    map[string]string // see Split
	wishes  wishes            // see Member.Want
	ready   bool
	hurry   bool // stop without waiting for others to be warm
	lost    bool

	busy     [Commit + 1]bool // the effects in progress
	saying   State            // the state in the renewal in progress
	writing  *Record          // the record in the commit in progress
	wantedAt time.Time        // since when the record needs a change
	stale    *string          // a version that is no longer that of the record
	doubt    *string          // a version that a commit in progress may still replace
	retry    time.Time        // of a commit that failed
}

// NewCore returns the core of a replica without slots. If there is a record, it determines the number of slots.
func NewCore(id string, slots int, timing Timing, now time.Time) *Core {
	return &Core{id: id, timing: timing, begin: now, slots: slots, members: map[string]*seen{}, phases: make([]phase, slots), left: make([]map[string]Handover, slots), gained: make([]Gained, slots)}
}

// Ready allows the replica to be given slots.
func (c *Core) Ready() { c.ready = true }

// Leave makes the replica give its slots away. With hurry, it does not wait until others are warm.
func (c *Core) Leave(now time.Time, hurry bool) {
	if c.leaving.IsZero() {
		c.leaving = now
	}
	c.hurry = c.hurry || hurry
}

// Left reports whether the replica is leaving and has no slots left.
func (c *Core) Left() bool {
	return !c.leaving.IsZero() && !c.holds(opening) &&
		(c.record == nil || !slices.ContainsFunc(c.record.Slots, func(s Slot) bool { return s.Owner == c.id }))
}

// MayWrite reports whether the replica's lease is valid.
func (c *Core) MayWrite(now time.Time) bool {
	return !c.lost && !c.renewed.IsZero() && now.Before(c.renewed.Add(c.timing.validity()))
}

// Split proposes the field that determines the slot of a controller's objects. The record has the decision.
func (c *Core) Split(controller, by string) {
	if c.keys == nil {
		c.keys = map[string]string{}
	}
	c.keys[controller] = by
}

// Lost reports whether another replica has ended the lease, or the record was changed by something other than the protocol. All runs must
// end then; see Rejoin.
func (c *Core) Lost() bool { return c.lost }

// SetLoad sets the load of the slots, in ms of computing per second.
func (c *Core) SetLoad(load map[int]int) { c.load = load }

// SetSummary sets the summary of the controllers.
func (c *Core) SetSummary(s Summary) { c.summary = s }

// Saw passes in a consistent snapshot of all leases and the record, from a list or a watch. A record that is older than the known one is
// ignored; nil means that there is none.
func (c *Core) Saw(now time.Time, leases []Lease, record *Record, version string) {
	here := make(map[string]bool, len(leases))
	for _, l := range leases {
		here[l.ID] = true
		if s := c.members[l.ID]; s == nil || s.Version != l.Version || s.gone {
			c.members[l.ID] = s.next(now, l, c.timing)
			c.members[l.ID].heard = s != nil || !c.renewed.IsZero()
			if l.ID == c.former { // as if it had been silent
				c.members[l.ID].since = now.Add(-max(l.Lasts, c.timing.Lease))
			}
		}
	}
	for id, s := range c.members {
		if !here[id] && !s.gone {
			s.gone, s.since = true, now
		}
	}
	if own := c.members[c.id]; own != nil && (own.Ended || own.gone) && !c.renewed.IsZero() {
		c.lost = true
	}
	deleted := record == nil && (c.read || is(c.stale, c.version))
	if deleted || record != nil && c.record != nil && record.ID != c.record.ID {
		c.lost = c.lost || c.holds(opening)
		c.record, c.version = nil, ""
	}
	if record != nil && (c.record == nil || !reflector.Older(version, c.version)) {
		c.take(now, record, version)
	}
	c.read = record != nil
}

// holds reports whether a slot has reached a phase.
func (c *Core) holds(p phase) bool {
	return slices.ContainsFunc(c.phases, func(q phase) bool { return q >= p })
}

// take accepts a record that was read or written.
func (c *Core) take(now time.Time, record *Record, version string) {
	if c.record == nil || record.Epoch != c.record.Epoch {
		c.moved = now
	}
	before := c.record
	c.record, c.version, c.known = record, version, true
	c.wishes.adopt(record)
	if n := len(record.Slots); n != len(c.phases) {
		if c.holds(warming) {
			c.lost = true
			return
		}
		c.phases, c.left, c.gained, before = make([]phase, n), make([]map[string]Handover, n), make([]Gained, n), nil
	}
	for i := range record.Slots {
		s, was := &record.Slots[i], Slot{}
		if before != nil {
			was = before.Slots[i]
		}
		if from := c.members[was.Owner]; from != nil && was.Owner != s.Owner && from.ran.Has(i) {
			c.gained[i].Heard = from.alive
		}
		if s.Owner != c.id && s.Owner != "" && c.members[s.Owner] == nil { // its lease was deleted, perhaps just now
			c.members[s.Owner] = &seen{Lease: Lease{ID: s.Owner, Lasts: c.timing.Lease, State: State{Record: record.ID}}, since: now, gone: true}
		}
		if s.Owner == c.id && (was.Owner != c.id || was.Epoch != s.Epoch) {
			c.gained[i].Since = now
		}
	}
}

// others yields the other replicas that may write. One may not once its lease was ended, or was deleted for as long as it would have lasted;
// the former one of this replica may not once its lease is gone.
func (c *Core) others(now time.Time) iter.Seq[*seen] {
	return func(yield func(*seen) bool) {
		for id, s := range c.members {
			over := s.Ended || s.gone && (id == c.former || now.Sub(s.since) >= max(s.Lasts, c.timing.Lease))
			if id != c.id && !over && !yield(s) {
				return
			}
		}
	}
}

// live returns the replicas whose lease is not over, ordered by ID, including this one.
func (c *Core) live(now time.Time) []Replica {
	var out []Replica
	for s := range c.others(now) {
		out = append(out, Replica{ID: s.ID, Takes: !s.gone && s.State.Takes && now.Sub(s.since) < s.Lasts, Load: s.State.Load})
	}
	if c.MayWrite(now) {
		out = append(out, Replica{ID: c.id, Takes: c.takes(), Load: c.load})
	}
	slices.SortFunc(out, func(a, b Replica) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}

func (c *Core) takes() bool { return c.ready && c.leaving.IsZero() }

// Slots returns the record, the leases of all replicas, and the state of this one, for status and metrics.
func (c *Core) Slots(now time.Time) (record *Record, leases []Lease, own State) {
	for _, id := range slices.Sorted(maps.Keys(c.members)) {
		if s := c.members[id]; !s.Ended && !s.gone {
			l := s.Lease
			l.Seen, l.Heard = s.since, s.heard
			leases = append(leases, l)
		}
	}
	return c.record, leases, c.state(now)
}
