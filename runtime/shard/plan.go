// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// Replica is a replica as seen by the others.
type Replica struct {
	ID string
	// Takes reports whether it may be given slots.
	Takes bool
	// Load is the load of the slots that it runs, in ms of computing per second.
	Load map[int]int
}

// plan changes the record so that each slot has a living owner, or will get one. members are the living replicas, ordered by ID. It reports
// whether anything has changed. The result depends only on the arguments, so that it does not matter which replica calls it.
//
// A slot goes to the replica with the highest rendezvous hash among those that have room: at most the number of slots divided by the number
// of replicas, rounded up. A slot with a living owner stays where it is, unless the set of replicas has changed.
func plan(r *Record, members []Replica, now time.Time) bool {
	p := planner{r: r, now: now, counts: map[string]int{}, live: map[string]*Replica{}}
	var names []string
	for i := range members {
		m := &members[i]
		p.live[m.ID] = m
		if m.Takes {
			p.takers = append(p.takers, m)
			names = append(names, m.ID)
		}
	}
	p.prune()
	if len(p.takers) == 0 {
		return p.changed
	}
	most := (len(r.Slots) + len(p.takers) - 1) / len(p.takers)
	for i := range r.Slots {
		if p.target(i) == "" {
			p.move(i, p.best(i, most))
		}
	}
	if balanced := strings.Join(names, " "); r.Balanced != balanced {
		p.balance()
		r.Balanced, p.changed = balanced, true
	}
	return p.changed
}

type planner struct {
	r       *Record
	now     time.Time
	live    map[string]*Replica
	takers  []*Replica     // those that take slots
	counts  map[string]int // the number of slots that each has or will get
	changed bool
}

// prune removes dead owners, and plans for replicas that no longer take slots, and counts the slots.
func (p *planner) prune() {
	for i := range p.r.Slots {
		s := &p.r.Slots[i]
		if s.Owner != "" && p.live[s.Owner] == nil {
			s.give("", s.Epoch, s.Moved, nil)
			p.changed = true
		}
		if s.Next != "" && !p.takes(s.Next) {
			s.Next, p.changed = "", true
		}
		if to := p.target(i); to != "" {
			p.counts[to]++
		}
	}
}

func (p *planner) takes(id string) bool { m := p.live[id]; return m != nil && m.Takes }

// target returns the replica that will finally have a slot, or "" if there is none yet.
func (p *planner) target(i int) string {
	s := &p.r.Slots[i]
	if s.Next != "" {
		return s.Next
	}
	if p.takes(s.Owner) {
		return s.Owner
	}
	return ""
}

// best returns the replica with room that has the highest hash for a slot.
func (p *planner) best(slot, most int) string {
	var best string
	var highest uint64
	for _, m := range p.takers {
		if score := rendezvous(slot, m.ID); p.counts[m.ID] < most && (best == "" || score > highest) {
			best, highest = m.ID, score
		}
	}
	return best
}

// rendezvous is the hash for choosing a replica.
func rendezvous(slot int, id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(slot)}) // never fails
	_, _ = h.Write([]byte(id))
	x := h.Sum64() // FNV does not mix its last bytes well, so finish like splitmix64
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// move makes a replica the target of a slot. If the slot has no owner, the replica becomes its owner at once.
func (p *planner) move(slot int, to string) {
	s := &p.r.Slots[slot]
	if before := p.target(slot); before != "" {
		p.counts[before]--
	}
	p.counts[to]++
	p.changed = true
	switch s.Owner {
	case "":
		s.give(to, p.r.Epoch, p.now, s.Handover)
	case to:
		s.Next = ""
	default:
		s.Next = to
	}
}

// balance moves slots until the numbers of slots of any two replicas differ by at most one.
func (p *planner) balance() {
	for {
		from := slices.MaxFunc(p.takers, func(a, b *Replica) int { return p.counts[a.ID] - p.counts[b.ID] }).ID
		to := slices.MinFunc(p.takers, func(a, b *Replica) int { return p.counts[a.ID] - p.counts[b.ID] }).ID
		if p.counts[from]-p.counts[to] <= 1 {
			return
		}
		slot, highest := -1, uint64(0)
		for i := range p.r.Slots {
			if score := rendezvous(i, to); p.target(i) == from && (slot < 0 || score > highest) {
				slot, highest = i, score
			}
		}
		p.move(slot, to)
	}
}

// relieve moves one slot from the replica with the highest load to the one with the lowest if that helps, and reports whether it did. It
// does nothing while other slots are moving.
func relieve(r *Record, members []Replica) bool {
	counts, loads := map[string]int{}, map[string]int{}
	var takers []*Replica
	total := 0
	for i := range members {
		if m := &members[i]; m.Takes {
			takers = append(takers, m)
			for _, l := range m.Load {
				loads[m.ID] += l
				total += l
			}
		}
	}
	if len(takers) < 2 {
		return false
	}
	for i := range r.Slots {
		if s := &r.Slots[i]; s.Owner == "" || s.Next != "" {
			return false
		}
		counts[r.Slots[i].Owner]++
	}
	hot := slices.MaxFunc(takers, func(a, b *Replica) int { return loads[a.ID] - loads[b.ID] })
	cold := slices.MinFunc(takers, func(a, b *Replica) int { return loads[a.ID] - loads[b.ID] })
	mean := total / len(takers)
	// Ignore small differences: less than a tenth of a CPU, or less than a quarter of the mean.
	if loads[hot.ID] < mean+100 || loads[hot.ID]*4 < mean*5 {
		return false
	}
	// The number of slots may exceed the mean by at most a quarter, to limit memory use.
	if most := (5*len(r.Slots) + 4*len(takers) - 1) / (4 * len(takers)); counts[cold.ID] >= most {
		return false
	}
	best, peak := -1, loads[hot.ID]*9/10 // it must help by a tenth
	for i := range r.Slots {
		if r.Slots[i].Owner != hot.ID || hot.Load[i] == 0 {
			continue
		}
		if after := max(loads[hot.ID]-hot.Load[i], loads[cold.ID]+hot.Load[i]); after < peak {
			best, peak = i, after
		}
	}
	if best >= 0 {
		r.Slots[best].Next = cold.ID
	}
	return best >= 0
}
