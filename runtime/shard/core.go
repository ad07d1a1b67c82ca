// Package shard shares objects between replicas of a process. The objects are split
// into slots by a hash, and each slot has one replica that runs its objects, as a
// Record says that all replicas share. Each replica has a Lease, whose end frees its
// slots.
//
//	Member    one replica: carries out what its Core decides
//	Core      decides what one replica does; has no clock and does no I/O
//	plan      decides which replica is to have which slot
//
// docs/scale.md has the protocol.
package shard

import (
	"maps"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// Timing says how long things last. All are measured by a replica's own clock.
type Timing struct {
	// Lease is how long the others wait for a replica that is silent.
	Lease time.Duration
	// Renew is how often a replica renews its lease.
	Renew time.Duration
	// Settle is how long the first replica waits for others before it takes slots,
	// and how long a replica that stops waits for the others to be warm.
	Settle time.Duration
}

// validity is how long a replica may write after it has sent a renewal that
// succeeded. The rest of the lease is for requests on their way, and for clocks that
// run at different rates.
func (t Timing) validity() time.Duration { return t.Lease * 9 / 10 }

// phase is what a replica does with a slot.
type phase uint8

const (
	idle     phase = iota // nothing
	dropping              // its watches end
	warming               // its watches sync
	warm                  // they have synced
	opening               // the cache catches up with the owner before
	open                  // runs go on
	closing               // runs end
	closed                // none goes on; to be given away
)

// Kind is what an Effect asks for.
type Kind uint8

// The kinds of effects. One each of Renew, Commit, and Fence or Forget is carried out
// at a time.
const (
	Renew  Kind = iota // write Lease.State to the own lease
	Fence              // end the lease of another replica, if it still has this version
	Commit             // write Record, if it still has this version
	Forget             // delete the lease of a replica that has ended, if it still has this version
	Warm               // start the watches of Slot, and wait until they have synced
	Open               // wait until the cache has what Handover says, or all from before Since, then run Slot
	Close              // let the runs of Slot end
	Drop               // stop the watches of Slot
)

// Effect is something to do outside of the core. Done takes in how it ended.
type Effect struct {
	Kind     Kind
	Slot     int
	ID       string // of the replica to fence
	Version  string
	State    State
	Record   *Record
	Handover map[string]Handover
	Since    time.Time // when it was known that the slot is the replica's
}

// Result is how an effect ended.
type Result struct {
	// Err says that nothing is known of the outcome, Lost that the version was not
	// the one that was asked for.
	Err, Lost bool
	Version   string              // after Commit
	Handover  map[string]Handover // after Close
}

// seen is a lease and when it changed last, by the own clock.
type seen struct {
	Lease
	since time.Time
	gone  bool // somebody has deleted it
}

// Core decides what one replica does. It has no clock and does no I/O: its owner
// tells it what was read and what has ended, and carries out the effects. It belongs
// to one goroutine.
//
// It is safe because of three things. Only the owner of a slot can give it away, and
// only after its runs have ended. Who takes the slots of a dead replica has to end
// its lease first, which fails where it was renewed meanwhile. And a replica stops
// writing before its lease can be ended.
type Core struct {
	id     string
	timing Timing
	begin  time.Time

	slots   int     // of a new record
	record  *Record // as read or written last; nil: there is none
	version string  // of the record
	read    bool    // the record was there when Saw was called last
	moved   time.Time
	members map[string]*seen

	phases  []phase
	left    []map[string]Handover // of slots that are closed
	since   []time.Time           // when it was known that a slot is this replica's; an owner before wrote earlier
	said    State                 // as written last
	claims  slots.Set             // that the own lease may say are open
	renewed time.Time             // when the last renewal was sent that succeeded
	tried   time.Time             // when the last renewal was sent
	leaving time.Time             // zero unless the replica leaves
	load    map[int]int
	summary Summary
	keys    map[string]string // see Split
	ready   bool
	hurry   bool // it stops without waiting for others to be warm
	lost    bool

	busy     [Commit + 1]bool // what is on its way
	saying   State            // what the renewal on its way writes
	writing  *Record          // what the commit on its way writes
	wantedAt time.Time        // since when the record needs a change
	stale    *string          // a version that the record no longer has
	doubt    *string          // a version that a commit may still replace
	retry    time.Time        // of a commit that failed
}

// NewCore returns the core of a replica that has no slots yet. The slots are those of
// the record where there is one.
func NewCore(id string, slots int, timing Timing, now time.Time) *Core {
	return &Core{id: id, timing: timing, begin: now, slots: slots, members: map[string]*seen{}, phases: make([]phase, slots), left: make([]map[string]Handover, slots), since: make([]time.Time, slots)}
}

// Ready lets the replica be given slots.
func (c *Core) Ready() { c.ready = true }

// Leave makes the replica give its slots away. With hurry it does not wait until
// others are warm.
func (c *Core) Leave(now time.Time, hurry bool) {
	if c.leaving.IsZero() {
		c.leaving = now
	}
	c.hurry = c.hurry || hurry
}

// Left reports whether the replica leaves and has no slot any longer.
func (c *Core) Left() bool {
	return !c.leaving.IsZero() && !c.holds(opening) &&
		(c.record == nil || !slices.ContainsFunc(c.record.Slots, func(s Slot) bool { return s.Owner == c.id }))
}

// MayWrite reports whether the replica's lease is valid.
func (c *Core) MayWrite(now time.Time) bool {
	return !c.lost && !c.renewed.IsZero() && now.Before(c.renewed.Add(c.timing.validity()))
}

// Split proposes what the objects of a controller are in a slot by. The record says
// what it is.
func (c *Core) Split(controller, by string) {
	if c.keys == nil {
		c.keys = map[string]string{}
	}
	c.keys[controller] = by
}

// Lost reports whether the replica has lost its lease. It never gets it back.
func (c *Core) Lost(now time.Time) bool {
	if !c.renewed.IsZero() && !c.MayWrite(now) {
		c.lost = true
	}
	return c.lost
}

// SetLoad notes what slots cost, in ms of computing a second.
func (c *Core) SetLoad(load map[int]int) { c.load = load }

// SetSummary notes how the controllers do.
func (c *Core) SetSummary(s Summary) { c.summary = s }

// Saw takes in all leases and the record, of one moment, as a list or a watch has
// them. A record that is older than the one known is not read; nil says that there
// is none.
func (c *Core) Saw(now time.Time, leases []Lease, record *Record, version string) {
	here := make(map[string]bool, len(leases))
	for _, l := range leases {
		here[l.ID] = true
		if s := c.members[l.ID]; s == nil || s.Version != l.Version || s.gone {
			c.members[l.ID] = &seen{Lease: l, since: now}
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
	switch {
	case record == nil && c.read: // somebody has deleted it
		c.lost = c.lost || c.holds(opening)
		c.record, c.version = nil, ""
	case record != nil && (c.record == nil || record.Epoch >= c.record.Epoch):
		c.take(now, record, version)
	}
	c.read = record != nil
}

// holds reports whether a slot has come to a phase.
func (c *Core) holds(p phase) bool {
	return slices.ContainsFunc(c.phases, func(q phase) bool { return q >= p })
}

// take takes in a record that was read or written.
func (c *Core) take(now time.Time, record *Record, version string) {
	if c.record == nil || record.Epoch != c.record.Epoch {
		c.moved = now
	}
	before := c.record
	c.record, c.version = record, version
	if n := len(record.Slots); n != len(c.phases) {
		c.lost = c.lost || c.holds(warming)
		c.phases, c.left, c.since, before = make([]phase, n), make([]map[string]Handover, n), make([]time.Time, n), nil
	}
	for i := range record.Slots {
		if s := &record.Slots[i]; s.Owner == c.id && (before == nil || before.Slots[i].Owner != c.id || before.Slots[i].Epoch != s.Epoch) {
			c.since[i] = now
		}
	}
}

// live returns the replicas whose lease is not over, ordered by ID; the own one is
// among them. The others are dead once somebody has ended their lease, or where it
// was deleted for as long as it would have lasted.
func (c *Core) live(now time.Time) []Replica {
	var out []Replica
	for id, s := range c.members {
		if id == c.id || s.Ended || s.gone && now.Sub(s.since) >= max(s.Lasts, c.timing.Lease) {
			continue
		}
		m := Replica{ID: id, Takes: !s.gone && s.State.Takes && now.Sub(s.since) < s.Lasts, Open: s.State.Open, Load: s.State.Load}
		out = append(out, m)
	}
	if c.MayWrite(now) {
		out = append(out, Replica{ID: c.id, Takes: c.takes(), Open: c.said.Open, Load: c.load})
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

// Slots returns what the replica runs, and what of the others is known: for status
// and metrics.
func (c *Core) Slots(now time.Time) (record *Record, leases []Lease, own State) {
	for _, id := range slices.Sorted(maps.Keys(c.members)) {
		if s := c.members[id]; !s.Ended && !s.gone {
			l := s.Lease
			l.Heard = s.since
			leases = append(leases, l)
		}
	}
	return c.record, leases, c.state()
}
