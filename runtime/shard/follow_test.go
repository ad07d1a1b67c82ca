// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"
	"testing"
	"time"
)

// kinds returns the kinds of the effects of one step.
func kinds(c *Core, now time.Time) (out []Kind) {
	for _, e := range first(c.Step(now)) {
		out = append(out, e.Kind)
		if e.Kind == Renew || e.Kind == Warm {
			c.Done(now, e, Result{})
		}
	}
	return out
}

// A replica that does not know that a record was deleted does not write a new one while the lease of another replica names the deleted record:
// that one may be cut off, and about to run slots that its lease does not show.
func TestCore_NoRecordWhileAnotherIsFollowed(t *testing.T) {
	c := NewCore("b", 1, Timing{Lease: 15 * time.Second, Renew: 2 * time.Second, Settle: 4 * time.Second}, noon)
	c.Ready()
	other := Lease{ID: "a", Version: "1", Lasts: 15 * time.Second, State: State{Record: "deleted"}}
	for after := time.Duration(0); after < 10*time.Second; after += time.Second {
		c.Saw(noon.Add(after), []Lease{other}, nil, "")
		if got := kinds(c, noon.Add(after)); slices.Contains(got, Commit) {
			t.Fatalf("after %v: %v, want no Commit", after, got)
		}
	}
	other.Version, other.State.Record = "2", ""
	c.Saw(noon.Add(10*time.Second), []Lease{other}, nil, "")
	kinds(c, noon.Add(10*time.Second)) // the other one plans first
	if got := kinds(c, noon.Add(11*time.Second)); !slices.Contains(got, Commit) {
		t.Errorf("the other one follows none: %v, want Commit", got)
	}
}

// A replica opens a slot only when it reads its lease with the ID of the record, and no other replica follows another record.
func TestCore_OpensOnlySlotsOfTheRecordThatItsLeaseNames(t *testing.T) {
	for name, c := range map[string]struct {
		own, other string
		want       bool
	}{
		"not written yet":             {"", "", false},
		"written for another record":  {"deleted", "", false},
		"written":                     {"now", "now", true},
		"the other one follows none":  {"now", "", true},
		"the other one is not so far": {"now", "deleted", false},
	} {
		core := NewCore("a", 1, Timing{Lease: 15 * time.Second, Renew: 2 * time.Second, Settle: 4 * time.Second}, noon)
		core.Ready()
		record := &Record{ID: "now", Epoch: 1, Slots: []Slot{{Owner: "a"}}}
		leases := []Lease{{ID: "a", Version: "1", State: State{Record: c.own}}, {ID: "b", Version: "1", Lasts: 15 * time.Second, State: State{Record: c.other}}}
		core.Saw(noon, leases, record, "1")
		kinds(core, noon) // warms
		if got := slices.Contains(kinds(core, noon), Open); got != c.want {
			t.Errorf("%s: opens: %v, want %v", name, got, c.want)
		}
	}
}
