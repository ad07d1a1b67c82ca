// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// set is a set of slots.
func set(list ...int) (s slots.Set) {
	for _, i := range list {
		s.Put(i, true)
	}
	return s
}

// lease is a lease that last changed some time ago and lasts 15 s.
func lease(id string, ago time.Duration, open ...int) Lease {
	return Lease{ID: id, Lasts: 15 * time.Second, Seen: noon.Add(-ago), Heard: true, State: State{Takes: true, Open: set(open...)}}
}

func record(owners ...string) *Record {
	r := &Record{Epoch: 3}
	for _, o := range owners {
		r.Slots = append(r.Slots, Slot{Owner: o})
	}
	return r
}

func TestCoverage_SaysWhoRunsEachSlot(t *testing.T) {
	ended := lease("d", 0, 2)
	ended.Ended = true
	unheard := lease("b", 0, 1, 2)
	unheard.Heard = false
	for name, c := range map[string]struct {
		view View
		want string
	}{
		"no record":                   {View{ID: "a", Slots: 2}, "0 of 2 slots are run by one replica each; slots 0-1 have no owner"},
		"all is well":                 {View{ID: "a", Slots: 3, Record: record("a", "b", "b"), Own: State{Open: set(0)}, Leases: []Lease{lease("b", 0, 1, 2)}}, "3 of 3 slots are run by one replica each"},
		"the own lease is older":      {View{ID: "a", Slots: 1, Record: record("a"), Own: State{Open: set(0)}, Leases: []Lease{lease("a", 0, 0)}}, "1 of 1 slots are run by one replica each"},
		"the owner is late":           {View{ID: "a", Slots: 3, Record: record("a", "b", "c"), Own: State{Open: set(0)}, Leases: []Lease{lease("b", 6*time.Second, 1), lease("c", 5*time.Second, 2)}}, "2 of 3 slots are run by one replica each; slot 1 is believed to be: its replica is overdue"},
		"the owner was never heard":   {View{ID: "a", Slots: 3, Record: record("a", "b", "b"), Own: State{Open: set(0)}, Leases: []Lease{unheard}}, "1 of 3 slots are run by one replica each; slots 1-2 are believed to be: their replicas are overdue"},
		"on its way to this one":      {View{ID: "a", Slots: 1, Record: record("a")}, "0 of 1 slots are run by one replica each; slot 0 is moving"},
		"on its way to another":       {View{ID: "a", Slots: 2, Record: record("b", "b"), Leases: []Lease{lease("b", 14*time.Second)}}, "0 of 2 slots are run by one replica each; slots 0-1 are moving"},
		"the owner is silent":         {View{ID: "a", Slots: 1, Record: record("b"), Leases: []Lease{lease("b", 15*time.Second, 0)}}, "0 of 1 slots are run by one replica each; slot 0 has no owner"},
		"the owner was ended":         {View{ID: "a", Slots: 3, Record: record("a", "a", "d"), Own: State{Open: set(0, 1)}, Leases: []Lease{ended}}, "2 of 3 slots are run by one replica each; slot 2 has no owner"},
		"two run it":                  {View{ID: "a", Slots: 2, Record: record("a", "b"), Own: State{Open: set(0)}, Leases: []Lease{lease("b", 0, 0, 1)}}, "1 of 2 slots are run by one replica each; slot 0 is run by two replicas"},
		"a record of fewer slots":     {View{ID: "a", Slots: 2, Record: record("a"), Own: State{Open: set(0)}}, "1 of 2 slots are run by one replica each; slot 1 has no owner"},
		"no owner, but somebody runs": {View{ID: "a", Slots: 1, Record: record(""), Leases: []Lease{lease("b", 0, 0)}}, "1 of 1 slots are run by one replica each"},
	} {
		c.view.Patience = 5 * time.Second
		if got := c.view.Coverage(noon).String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestCore_TellsWhomItHasHeard: leases that a replica finds when it starts may be of dead replicas, until they are renewed.
func TestCore_TellsWhomItHasHeard(t *testing.T) {
	c := NewCore("a", 2, Timing{Lease: 15 * time.Second, Renew: 2 * time.Second, Settle: 4 * time.Second}, noon)
	at := func(after time.Duration, want string, leases ...Lease) {
		t.Helper()
		now, got := noon.Add(after), ""
		c.Saw(now, leases, nil, "")
		for _, e := range first(c.Step(now)) {
			if e.Kind == Renew {
				c.Done(now, e, Result{})
			}
		}
		_, all, _ := c.Slots(now)
		for _, l := range all {
			got += fmt.Sprintf("%s:%v ", l.ID, l.Heard)
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("after %v: %s, want %s", after, got, want)
		}
	}
	version := func(id, version string) Lease {
		return Lease{ID: id, Version: version, Lasts: 15 * time.Second}
	}
	at(0, "b:false c:false", version("b", "1"), version("c", "1"))
	at(time.Second, "b:false c:true", version("b", "1"), version("c", "2"))
	at(3*time.Second, "b:false c:true d:true", version("b", "1"), version("c", "2"), version("d", "1"))
}

func first(effects []Effect, _ time.Time) []Effect { return effects }

// randomView is a view with all possible problems.
func randomView(rng *rand.Rand) *View {
	ids := []string{"", "a", "b", "c", "d"}
	v := &View{ID: "a", Slots: 1 + rng.IntN(slots.Max), Patience: 5 * time.Second}
	random := func() (s slots.Set) {
		for i := range v.Slots {
			s.Put(i, rng.IntN(3) == 0)
		}
		return s
	}
	if rng.IntN(10) > 0 {
		v.Record = &Record{Slots: make([]Slot, 1+rng.IntN(slots.Max))}
		for i := range v.Record.Slots {
			v.Record.Slots[i].Owner = ids[rng.IntN(len(ids))]
		}
	}
	for _, id := range ids[1:] {
		if rng.IntN(3) > 0 {
			l := lease(id, time.Duration(rng.IntN(30))*time.Second)
			l.State.Open, l.Ended, l.Heard = random(), rng.IntN(5) == 0, rng.IntN(5) > 0
			v.Leases = append(v.Leases, l)
		}
	}
	v.Own.Open = random()
	return v
}

// TestCoverage_StatesSumToAll: each slot is in one state, which agrees with the number of replicas that run it.
func TestCoverage_StatesSumToAll(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		v := randomView(rng)
		c, sum := v.Coverage(noon), 0
		for _, state := range SlotStates {
			sum += c.Count(state)
		}
		if sum != v.Slots {
			t.Fatalf("%d of %d slots have a state: %+v", sum, v.Slots, v)
		}
		for i := range c {
			if got, want := c[i].State, simpleState(v, i); got != want {
				t.Fatalf("slot %d is %s, want %s: %+v", i, got, want, v)
			}
		}
	}
}

// simpleState returns the state of a slot from the number of replicas that run it.
func simpleState(v *View, slot int) SlotState {
	run, others, late := 0, 0, false
	live := map[string]bool{v.ID: true}
	for _, l := range v.Leases {
		if l.ID == v.ID || l.Ended || noon.Sub(l.Seen) >= l.Lasts {
			continue
		}
		if live[l.ID] = true; l.State.Open.Has(slot) {
			run, others, late = run+1, others+1, !l.Heard || noon.Sub(l.Seen) > 5*time.Second
		}
	}
	if v.Own.Open.Has(slot) {
		run++
	}
	switch {
	case run > 1:
		return Double
	case others == 1 && late:
		return Believed
	case others == 1:
		return Elsewhere
	case run == 1:
		return Here
	case v.Record != nil && slot < len(v.Record.Slots) && live[v.Record.Slots[slot].Owner]:
		return Moving
	}
	return Unowned
}

// TestAlarm_HasPatienceWithSlotsWithoutOwner: they are tolerated for a while, but slots that are run twice are not.
func TestAlarm_HasPatienceWithSlotsWithoutOwner(t *testing.T) {
	var a alarm
	cover := func(states ...SlotState) (c Coverage) {
		for _, s := range states {
			c = append(c, Cover{State: s})
		}
		return c
	}
	for i, step := range []struct {
		after time.Duration
		c     Coverage
		want  string
	}{
		{0, cover(Here, Unowned, Moving), ""},
		{9 * time.Second, cover(Unowned, Unowned, Moving), ""},
		{10 * time.Second, cover(Unowned, Unowned, Moving), "slot 1 has no owner"},
		{11 * time.Second, cover(Unowned, Unowned, Moving), "slot 1 has no owner"},
		{19 * time.Second, cover(Unowned, Unowned, Moving), "slots 0-1 have no owner"},
		{20 * time.Second, cover(Here, Unowned, Double), "slot 1 has no owner; slot 2 is run by two replicas"},
		{21 * time.Second, cover(Here, Elsewhere, Here), ""},
		{22 * time.Second, cover(Unowned, Elsewhere, Here), ""},
		{40 * time.Second, cover(Unowned, Unowned), ""}, // another number of slots
	} {
		if text := a.check(noon.Add(step.after), step.c, 10*time.Second); text != step.want {
			t.Errorf("step %d: %q, want %q", i, text, step.want)
		}
	}
}

func TestMoves_CountsWhatCameAndWent(t *testing.T) {
	for _, c := range []struct {
		before, after *Record
		want          uint64
	}{
		{nil, nil, 0},
		{nil, record("a", "b"), 1},
		{record("a", "b"), record("a", "b"), 0},
		{record("a", "b"), record("b", "a"), 2},
		{record("", "b"), record("a", ""), 1},
		{record("a", "a"), nil, 2},
	} {
		if got := moves("a", c.before, c.after); got != c.want {
			t.Errorf("%+v to %+v: %d, want %d", c.before, c.after, got, c.want)
		}
	}
}

// TestState_LeaseStaysSmall: with the maximum number of slots, a lease is far below the limit of an annotation.
func TestState_LeaseStaysSmall(t *testing.T) {
	s := State{Takes: true, Load: map[int]int{}, Summary: Summary{Version: "v1.10.10-rc.10", Controllers: 100, Objects: 1e6, Due: 1e6, Running: 1e3, Failing: 1e6, Runs: 1e12, Modules: map[string]Module{}}}
	for i := range MaxModules {
		s.Summary.Modules[fmt.Sprintf("controller-%030d", i)] = Module{Digest: "0123456789ab", Revision: 1000, Paused: true}
	}
	for i := range slots.Max {
		s.Load[i] = 99999
		s.Open.Put(i, i%2 == 0)
		s.Warm.Put(i, i%2 == 0)
	}
	if text := encoded(t, s); len(text) > 16<<10 {
		t.Errorf("%d bytes", len(text))
	}
	if text := encoded(t, State{Takes: true}); strings.Contains(text, "summary") {
		t.Errorf("%s has a summary of nothing", text)
	}
}

func encoded(t *testing.T, s State) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
