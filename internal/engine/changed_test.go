// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// TestSwap_ReconcilesWhatIsInDoubt: with --reconcile-on-swap=changed, a swap triggers the
// objects whose last run did not succeed, a rollback those that the failed module had run,
// and a module with other watches all objects.
func TestSwap_ReconcilesWhatIsInDoubt(t *testing.T) {
	opts := swapOptions()
	opts.Rollout.Reconcile, opts.Rollout.Probation = v1alpha1.ReconcileChanged, "1h"
	opts.Rollout.AllowMoreRights = new(true)                                // a watch is a right
	w := newSwapping(t, enginetest.Worse(enginetest.TrapsOnTenth, 0), opts) // traps for o0 and o10
	for i := range 12 {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Until(t, "all objects have run", func() bool {
		n := 0
		for i := range 12 {
			n += min(1, w.observer.noted(w.key(i), 1))
		}
		return n == 12
	})
	ran := func(revision uint64) (list []int) {
		for i := range 12 {
			if w.observer.noted(w.key(i), revision) > 0 {
				list = append(list, i)
			}
		}
		return list
	}
	wantRan := func(revision uint64, want ...int) {
		t.Helper()
		enginetest.Until(t, fmt.Sprintf("revision %d has run %v", revision, want), func() bool { return fmt.Sprint(ran(revision)) == fmt.Sprint(want) })
	}
	w.onProbation(0)
	good := w.mustSwap(enginetest.Worse(enginetest.Good, 1))
	wantRan(good, 0, 10)

	w.onProbation(time.Hour)
	bad := w.mustSwap(enginetest.Worse(enginetest.Traps, 2))
	for _, i := range []int{3, 5, 7} {
		if err := w.put(t.Context(), i, 2); err != nil {
			t.Fatal(err)
		}
	}
	if g := w.verdict(bad); g.State != "failed" {
		t.Fatalf("%+v", g)
	}
	enginetest.Until(t, "what it had run is reconciled again", func() bool { return w.observer.behind() == 0 })
	wantRan(bad+1, 3, 5, 7)

	w.onProbation(0)
	more := w.mustSwap(enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{Version: "2", Watches: []abi.Watch{watchOf("Secret", "label:swap")}}))
	wantRan(more, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	w.wantNoFaults()
}
