// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

// replicas returns replicas with these numbers, which all take slots.
func replicas(ids ...int) (out []Replica) {
	for _, id := range ids {
		out = append(out, Replica{ID: fmt.Sprintf("r%02d", id), Takes: true})
	}
	return out
}

// targets returns the number of slots that each replica has or will get.
func targets(r *Record) map[string]int {
	counts := map[string]int{}
	for _, s := range r.Slots {
		if s.Next != "" {
			counts[s.Next]++
		} else {
			counts[s.Owner]++
		}
	}
	return counts
}

// Replicas come and go: each slot gets an owner, the numbers of slots differ by at most one, and no more slots move
// than necessary.
func TestPlan_SpreadsEvenlyAndMovesLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 16))
	for range 500 {
		r := &Record{Slots: make([]Slot, 1+rng.IntN(100))}
		var live []int
		for step := range 20 {
			before := targets(r)
			if len(live) < 2 || rng.IntN(2) == 0 {
				live = append(live, step)
			} else {
				i := rng.IntN(len(live))
				live = append(live[:i:i], live[i+1:]...)
			}
			members := replicas(live...)
			plan(r, members, time.Unix(0, 0))
			after := targets(r)
			least, most, moved := len(r.Slots), 0, 0
			for _, m := range members {
				least, most = min(least, after[m.ID]), max(most, after[m.ID])
				moved += max(0, after[m.ID]-before[m.ID])
			}
			if after[""] > 0 || most-least > 1 || len(after) > len(members) {
				t.Fatalf("%d slots over %v: %v", len(r.Slots), live, after)
			}
			if bound := (len(r.Slots)+len(live)-1)/len(live) + len(live); moved > bound && step > 0 {
				t.Fatalf("%d of %d slots moved for one replica of %d: %v, then %v", moved, len(r.Slots), len(live), before, after)
			}
			if plan(r, members, time.Unix(0, 0)) {
				t.Fatal("a second plan changes something")
			}
			for i := range r.Slots { // they are handed over
				if s := &r.Slots[i]; s.Next != "" {
					s.give(s.Next, r.Epoch, time.Unix(0, 0), nil)
				}
			}
		}
	}
}

// A replica with a much higher load than the mean gives one slot to the one with the lowest, but not if that would not
// help.
func TestRelieve_MovesTheHottestThatHelps(t *testing.T) {
	r := &Record{Slots: make([]Slot, 8)}
	members := replicas(1, 2)
	plan(r, members, time.Unix(0, 0))
	var mine []int
	for i, s := range r.Slots {
		if s.Owner == "r01" {
			mine = append(mine, i)
		}
	}
	for name, c := range map[string]struct {
		load  map[int]int
		moves int // the slot, or -1
	}{
		"level":             {map[int]int{}, -1},
		"little":            {map[int]int{mine[0]: 60, mine[1]: 60}, -1},
		"one hot slot":      {map[int]int{mine[0]: 900}, -1},
		"two hot slots":     {map[int]int{mine[0]: 500, mine[1]: 400}, mine[0]},
		"one among several": {map[int]int{mine[0]: 800, mine[1]: 300, mine[2]: 200}, mine[0]},
	} {
		next := r.clone()
		members[0].Load = c.load
		moved := -1
		if relieve(next, members) {
			for i, s := range next.Slots {
				if s.Next != "" {
					moved = i
				}
			}
		}
		if c.moves == -1 && moved != -1 || c.moves != -1 && moved == -1 {
			t.Errorf("%s: moved slot %d, want %d", name, moved, c.moves)
		}
		if moved != -1 && next.Slots[moved].Next != "r02" {
			t.Errorf("%s: to %q", name, next.Slots[moved].Next)
		}
		if moved != -1 && relieve(next, members) {
			t.Errorf("%s: a second slot moves before the first has arrived", name)
		}
	}
}

func TestRecord_LeavesOutWhatIsOnlyUsefulWhereItIsTooLong(t *testing.T) {
	r := &Record{Epoch: 7, Slots: make([]Slot, 64)}
	for i := range r.Slots {
		h := Handover{Writes: []Write{{Resource: "configmaps", ResourceVersion: "12"}}}
		for n := range 100 {
			h.Failing = append(h.Failing, Failing{Attempt: n, Since: time.Unix(1, 0)})
		}
		r.Slots[i].Handover = map[string]Handover{"c": h}
	}
	text, err := r.encode()
	if err != nil || len(text) > maxRecord {
		t.Fatalf("%d bytes: %v", len(text), err)
	}
	back, err := decodeRecord(text)
	if err != nil || back.Epoch != 7 || len(back.Slots[3].Handover["c"].Writes) != 1 {
		t.Errorf("read back: %v", err)
	}
	if len(r.Slots[0].Handover["c"].Failing) != 100 {
		t.Error("the record itself was changed")
	}
	deleted := []abi.Key{{Name: "gone"}}
	for i := range r.Slots {
		h := r.Slots[i].Handover["c"]
		h.Deleted = deleted
		r.Slots[i].Handover["c"] = h
	}
	if text, err = r.encode(); err != nil || !strings.Contains(text, "gone") || strings.Contains(text, "failing") {
		t.Errorf("deletions are omitted before failing objects: %v", err)
	}
	for n := range 100 {
		deleted = append(deleted, abi.Key{Namespace: "a-namespace-with-a-long-name", Name: fmt.Sprint("object-", n)})
	}
	for i := range r.Slots {
		h := r.Slots[i].Handover["c"]
		h.Deleted = deleted
		r.Slots[i].Handover["c"] = h
	}
	if text, err = r.encode(); err != nil || len(text) > maxRecord {
		t.Errorf("%d bytes with deletions: %v", len(text), err)
	}
}

// A replica reads the record and the state that the released version has written, and ignores fields that it does not know. It refuses a
// record with a version.
func TestRecord_OfOtherVersions(t *testing.T) {
	text := readReleased(t, "record.json")
	for _, text := range []string{text, `{"later":{},` + text[1:]} {
		r, err := decodeRecord(text)
		if err != nil || len(r.Slots) != 4 || r.Slots[0].Owner == "" || r.Epoch == 0 || r.Keys["webapp"] != slots.UID {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if _, err := decodeRecord(`{"version":1,` + text[1:]); err == nil || !strings.Contains(err.Error(), "newer wasmctl") {
		t.Errorf("of a newer version: %v", err)
	}
	var s State
	if err := json.Unmarshal([]byte(readReleased(t, "replica.json")), &s); err != nil || !s.Takes || s.Open.Len() == 0 || s.Summary.Controllers != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// readReleased returns a text that the released version of wasmctl has written.
func readReleased(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/released/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func FuzzRecord(f *testing.F) {
	for _, text := range []string{"", "{}", `{"epoch":1,"slots":[{}]}`, `{"epoch":1,"slots":[{"owner":"a","next":"b","handover":{"c":{"writes":[{"key":{}}]}}}]}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := decodeRecord(text)
		if err != nil {
			return
		}
		out, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeRecord(out); err != nil {
			t.Errorf("%q: %v", out, err)
		}
	})
}

func TestLoad_FollowsWhatIsSpent(t *testing.T) {
	var l load
	now, spent := time.Unix(0, 0), time.Duration(0)
	var got map[int]int
	for range 60 {
		got = l.measure(now, map[int]time.Duration{3: spent, 4: 0})
		now, spent = now.Add(5*time.Second), spent+time.Second
	}
	if got[3] < 190 || got[3] > 200 || len(got) != 1 {
		t.Errorf("a second of work in five is %v, want 200 for slot 3", got)
	}
	for range 60 {
		got = l.measure(now, map[int]time.Duration{3: spent})
		now = now.Add(5 * time.Second)
	}
	if len(got) != 0 {
		t.Errorf("after five idle minutes: %v", got)
	}
}
