// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// ranFor plays a run that begins at a time, because of related objects.
func ranFor(r *Recorder, id string, key abi.Key, at time.Time, refs ...abi.Key) *Run {
	var reasons queue.Reasons
	for _, ref := range refs {
		reason := abi.Reason{Type: abi.ReasonRelated, Resource: "deployments.apps", Ref: ref}
		reasons = queue.MergeReasons(reasons, queue.Reasons{First: reason})
	}
	r.Begin(&Running{ID: id, Key: key, Since: at})
	r.End(key, &Run{ID: id, Started: at, Took: Duration(time.Millisecond), Reasons: reasons})
	return &r.Runs(key)[0]
}

func second(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }

// A run shows the changes of a related object since the previous run and before this one,
// for each of several related objects.
func TestRecorder_SaysWhatChangedInARelatedObject(t *testing.T) {
	r, key, other, child := New(1<<20), abi.Key{Name: "a"}, abi.Key{Name: "b"}, abi.Key{Name: "child"}
	state := func(n int64) []byte { return pack(t, map[string]any{"status": map[string]any{"ready": n}}) }
	change := func(from, to int64) { r.Related("deployments.apps", child, second(int(to)*10), state(from), state(to)) }
	reported := func(effect Effect, changes ...diff.Change) []Related {
		return []Related{{"deployments.apps", Object{child}, effect, changes}}
	}
	check := func(what string, want []Related, run *Run) {
		t.Helper()
		if d := cmp.Diff(want, run.Related); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	r.Related("deployments.apps", child, second(5), nil, state(0))
	check("a new one", reported(Created), ranFor(r, "1", key, second(6), child))
	change(0, 1)
	change(1, 2)
	change(2, 3) // at 30, after the run began
	check("two events", reported(Changed, diff.Change{Path: "status.ready", Before: "0", After: "2"}), ranFor(r, "2", key, second(25), child))
	check("the one that came meanwhile", reported(Changed, diff.Change{Path: "status.ready", Before: "2", After: "3"}), ranFor(r, "3", key, second(35), child))
	check("another object, that never ran", reported(Created), ranFor(r, "4", other, second(36), child))
	check("nothing since", nil, ranFor(r, "5", key, second(37), child))
	change(3, 4)
	change(4, 3)
	r.Related("deployments.apps", child, second(41), state(3), state(3))
	check("there and back", reported(Unchanged), ranFor(r, "6", key, second(42), child))
	r.Related("deployments.apps", child, second(50), state(3), nil)
	check("gone", reported(Deleted), ranFor(r, "7", key, second(51), child))
	check("one that is not known", nil, ranFor(r, "8", key, second(52), abi.Key{Name: "nobody"}))
}

// Related objects use only their part of the memory, and a run names at most the maximum
// number of changes; values that must not be shown are hidden.
func TestRecorder_RelatedIsBoundedAndHidden(t *testing.T) {
	const limit = 64 << 10
	r, key := New(limit), abi.Key{Name: "a"}
	r.Shown = func(_ string, state []byte) []byte {
		o, err := abi.DecodeObject(state)
		if err != nil {
			t.Fatal(err)
		}
		o["hidden"] = "?"
		return pack(t, o)
	}
	wide := func(v string) []byte {
		o := map[string]any{"hidden": v}
		for i := range 40 {
			o[fmt.Sprint("field", i)] = v
		}
		return pack(t, o)
	}
	for i := range 500 {
		r.Related("deployments.apps", abi.Key{Name: fmt.Sprint("child-", i)}, second(i), wide("x"), wide("y"))
		if r.related.size > limit/4 {
			t.Fatalf("%d bytes are taken after %d events", r.related.size, i+1)
		}
	}
	run := ranFor(r, "1", key, second(1000), abi.Key{Name: "child-0"}, abi.Key{Name: "child-499"})
	if len(run.Related) != 1 || len(run.Related[0].Changes) != MaxRelatedChanges+1 || run.Related[0].Changes[MaxRelatedChanges].Path != diff.More {
		t.Fatalf("%+v", run.Related)
	}
	for _, c := range run.Related[0].Changes {
		if c.Path == "hidden" {
			t.Errorf("%+v", c)
		}
	}
	r.Related("deployments.apps", abi.Key{Name: "huge"}, second(1), make([]byte, limit), nil)
	if _, ok := r.related.byKey[ident{"deployments.apps", abi.Key{Name: "huge"}}]; ok {
		t.Error("what is larger than all the memory was kept")
	}
}
