// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

func reason(t abi.ReasonType) abi.Reason { return abi.Reason{Type: t} }

func one(t abi.ReasonType) queue.Reasons { return queue.Reasons{First: reason(t)} }

func relatedTo(name string) abi.Reason {
	return abi.Reason{Type: abi.ReasonRelated, Resource: "secrets", Ref: ref("ns", name)}
}

func TestMergeReasons_KeepsEachOnceInOrder(t *testing.T) {
	got := one(abi.ReasonListed)
	for _, next := range []queue.Reasons{one(abi.ReasonObjectUpdated), one(abi.ReasonListed), {First: relatedTo("a"), More: []abi.Reason{relatedTo("b"), relatedTo("a")}}} {
		got = queue.MergeReasons(got, next)
	}
	want := queue.Reasons{First: reason(abi.ReasonListed), More: []abi.Reason{reason(abi.ReasonObjectUpdated), relatedTo("a"), relatedTo("b")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Rule 3: a trigger absorbs a pending timer; the run belongs to the trigger.
func TestMergeReasons_TriggerComesBeforeTimer(t *testing.T) {
	for _, timer := range []abi.ReasonType{abi.ReasonRequeue, abi.ReasonRetry} {
		want := queue.Reasons{First: reason(abi.ReasonObjectUpdated), More: []abi.Reason{reason(timer)}}
		if diff := cmp.Diff(want, queue.MergeReasons(one(timer), one(abi.ReasonObjectUpdated))); diff != "" {
			t.Errorf("timer first: %s", diff)
		}
		if diff := cmp.Diff(want, queue.MergeReasons(one(abi.ReasonObjectUpdated), one(timer))); diff != "" {
			t.Errorf("trigger first: %s", diff)
		}
	}
}

func TestMergeReasons_ZeroIsNoReason(t *testing.T) {
	want := one(abi.ReasonListed)
	if diff := cmp.Diff(want, queue.MergeReasons(queue.Reasons{}, want)); diff != "" {
		t.Errorf("queued is zero: %s", diff)
	}
	if diff := cmp.Diff(want, queue.MergeReasons(want, queue.Reasons{})); diff != "" {
		t.Errorf("next is zero: %s", diff)
	}
}

// Rule 2: nothing is lost; reasons that do not fit are counted. The model stores all reasons, in order.
func TestMergeReasons_LikeTheModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var model []abi.Reason // of triggers, then of timers
		var got queue.Reasons
		different := map[abi.Reason]bool{}
		for range rng.IntN(40) {
			r := relatedTo(string(rune('a' + rng.IntN(12))))
			if rng.IntN(8) == 0 {
				r = reason(abi.ReasonRequeue)
			}
			got = queue.MergeReasons(got, queue.Reasons{First: r})
			different[r] = true
			if !slices.Contains(model, r) {
				model = append(model, r)
			}
		}
		kept := make(map[abi.Reason]bool)
		for _, r := range append([]abi.Reason{got.First}, got.More...) {
			if r != (abi.Reason{}) && (kept[r] || !different[r]) {
				t.Fatalf("%v appears twice or was never requested: %+v", r, got)
			}
			kept[r] = true
		}
		first := slices.IndexFunc(model, func(r abi.Reason) bool { return r.Type != abi.ReasonRequeue })
		switch {
		case len(model) == 0:
			continue
		case first < 0:
			first = 0
		}
		if got.First != model[first] {
			t.Fatalf("first is %v, want %v", got.First, model[first])
		}
		if want := min(len(model), queue.MaxReasons); len(got.More)+1 != want {
			t.Fatalf("%d reasons, want %d of %d", len(got.More)+1, want, len(model))
		}
		if (got.Dropped > 0) != (len(model) > queue.MaxReasons) || got.Dropped < len(model)-queue.MaxReasons {
			t.Fatalf("%d dropped of %d", got.Dropped, len(model))
		}
	}
}

func TestMergeReasons_LeavesNextAlone(t *testing.T) {
	more := make([]abi.Reason, 1, 8)
	more[0] = relatedTo("b")
	next := queue.Reasons{First: relatedTo("a"), More: more}
	got := queue.MergeReasons(queue.Reasons{}, next)
	queue.MergeReasons(got, queue.Reasons{First: relatedTo("c")})
	if more[:2][1] != (abi.Reason{}) {
		t.Error("the memory of next was written to")
	}
}

func TestMergeReasons_AllocatesNothingForOneReason(t *testing.T) {
	queued := one(abi.ReasonObjectUpdated)
	if n := testing.AllocsPerRun(100, func() { queued = queue.MergeReasons(queued, one(abi.ReasonObjectUpdated)) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
