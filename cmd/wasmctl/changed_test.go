package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// TestLastGood_DoubtIsOfTheLastRun: an object is in doubt until a run of it
// succeeds, after one that failed, after one that was interrupted, and after one
// of a generation that is not believed any more.
func TestLastGood_DoubtIsOfTheLastRun(t *testing.T) {
	l := lastGood{on: true}
	object, err := reflector.Pack(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "b", "uid": "u"}}, reflector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := func(what string, doubt bool) {
		t.Helper()
		if l.inDoubt(object) != doubt {
			t.Errorf("%s: in doubt %v", what, !doubt)
		}
	}
	end := func(generation uint64, err error) {
		l.end(&applier.Outcome{Key: object.Ref(), Generation: generation, Err: err})
	}
	want("never ran", true)
	end(1, nil)
	want("ran", false)
	end(1, errors.New("no"))
	want("failed", true)
	end(2, nil)
	end(2, fmt.Errorf("%w", applier.ErrInterrupted))
	want("interrupted", true)
	end(3, nil)
	l.distrust(2)
	want("another is not believed", false)
	l.distrust(3)
	want("its generation is not believed", true)
	end(4, nil)
	end(0, applier.ErrObjectNotFound)
	if len(l.byKey) != 0 {
		t.Error("what is gone is remembered")
	}
	off := lastGood{}
	off.end(&applier.Outcome{Key: object.Ref(), Generation: 1})
	if off.byKey != nil {
		t.Error("it keeps what nobody asks for")
	}
}

// TestSwap_ReconcilesWhatIsInDoubt: with --reconcile-on-swap=changed a swap runs
// the objects whose last run did not succeed, a module that was taken back those
// that it had run, and one that watches something else all of them.
func TestSwap_ReconcilesWhatIsInDoubt(t *testing.T) {
	opts := swapOptions()
	opts.reconcileOnSwap, opts.probation = reconcileChanged, time.Hour
	w := newSwapping(t, worse(modeTrapsOnTenth, 0), opts) // traps for o0 and o10
	for i := range 12 {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all objects have run", func() bool {
		n := 0
		for i := range 12 {
			n += min(1, w.observer.noted(w.key(i), 1))
		}
		return n == 12
	})
	ran := func(generation uint64) (list []int) {
		for i := range 12 {
			if w.observer.noted(w.key(i), generation) > 0 {
				list = append(list, i)
			}
		}
		return list
	}
	wantRan := func(generation uint64, want ...int) {
		t.Helper()
		until(t, fmt.Sprintf("generation %d has run %v", generation, want), func() bool { return fmt.Sprint(ran(generation)) == fmt.Sprint(want) })
	}
	w.onProbation(0)
	good := w.mustSwap(worse(modeGood, 1))
	wantRan(good, 0, 10)

	w.onProbation(time.Hour)
	bad := w.mustSwap(worse(modeTraps, 2))
	for _, i := range []int{3, 5, 7} {
		if err := w.put(t.Context(), i, 2); err != nil {
			t.Fatal(err)
		}
	}
	if g := w.verdict(bad); g.State != "failed" {
		t.Fatalf("%+v", g)
	}
	until(t, "what it had run is reconciled again", func() bool { return w.observer.behind() == 0 })
	wantRan(bad+1, 3, 5, 7)

	w.onProbation(0)
	more := w.mustSwap(withManifest(t, modeGood, &abi.Manifest{Version: "2", Watches: []abi.Watch{watchOf("Secret", "label:swap")}}))
	wantRan(more, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	w.wantNoFaults()
}
