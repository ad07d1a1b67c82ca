// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/rollout"
)

// waiting returns a module that watches a kind that does not exist yet.
func (w *swapping) waiting(version string) []byte {
	w.t.Helper()
	return enginetest.WithManifest(w.t, enginetest.Good, &abi.Manifest{
		Version: version, Watches: []abi.Watch{{Group: w.group, Version: "v1", Kind: "Gadget", Map: "label:swap"}},
	})
}

// beginSwap starts a swap to a module that waits, and returns its result once wasmctl
// status shows the wait.
func (w *swapping) beginSwap(module []byte) <-chan error {
	w.t.Helper()
	ended := make(chan error, 1)
	ctx := w.t.Context()
	go func() {
		_, _, err := w.life.Swap(ctx, module, rollout.SwapOptions{})
		ended <- err
	}()
	w.awaitLoading()
	return ended
}

// awaitLoading waits until a module is shown that waits for its kind.
func (w *swapping) awaitLoading() {
	w.t.Helper()
	enginetest.Until(w.t, "status says what the module waits for", func() bool {
		for _, g := range w.engine.Revisions() {
			if g.State == "loading" && strings.Contains(g.Reason, "Gadget") {
				return true
			}
		}
		return false
	})
}

// TestSwap_NothingWaitsForOneThatIsPrepared: while a module waits for a kind that does not
// exist, settings change, and a revision on probation is judged and rolled back, and the
// module keeps waiting. Another requested module is swapped in immediately and supersedes
// the waiting one.
func TestSwap_NothingWaitsForOneThatIsPrepared(t *testing.T) {
	w := newSwapping(t, enginetest.Worse(enginetest.Good, 0), swapOptions())
	w.onProbation(time.Hour)
	bad := w.mustSwap(enginetest.Worse(enginetest.Traps, 1))
	ended := w.beginSwap(w.waiting("1"))

	value := "blue"
	if _, err := w.life.Override(t.Context(), map[string]*string{"color": &value}); err != nil {
		t.Errorf("settings do not change: %v", err)
	}
	w.awaitLoading()
	for i := range 4 {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	if g := w.verdict(bad); g.State != "failed" {
		t.Errorf("revision %d: %+v", bad, g)
	}
	enginetest.Until(t, "all objects are reconciled by the first module", func() bool { return w.observer.behind() == 0 })
	w.awaitLoading()
	select {
	case err := <-ended:
		t.Fatalf("the module waits no more: %v", err)
	default:
	}

	number := w.mustSwap(enginetest.Worse(enginetest.Good, 2))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), ErrSuperseded.Error()) {
		t.Errorf("the module that waited: %v", err)
	}
	if got := w.engine.Module.Revision(); got != number {
		t.Errorf("revision %d is live, want %d", got, number)
	}
	w.wantNoFaults()
}

// A module that waits for a kind becomes live once the kind exists, even if its preparation
// was interrupted.
func TestSwap_PreparedOnceItsKindIsThere(t *testing.T) {
	opts := swapOptions()
	opts.Rollout.AllowMoreRights = new(true) // a watch is a right
	w := newSwapping(t, enginetest.Worse(enginetest.Good, 0), opts)
	ended := w.beginSwap(w.waiting("1"))
	if err := w.life.Do(t.Context(), func(context.Context, *Controller) (misfit, err error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	w.define("gadgets", "Gadget")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := w.sources(); got != "swaps gadgets" {
		t.Errorf("watches %s", got)
	}
}

// A module that does worse is rolled back even while the API server is unavailable, and so
// it is with wasmctl rollback: the kinds of a revision are cached.
func TestSwap_RollsBackWithoutTheAPIServer(t *testing.T) {
	link, opts := devclustertest.Proxy(t, devclustertest.Shared(t)), swapOptions()
	opts.config = link.RESTConfig()
	w := newSwapping(t, enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{
		Version: "1", Owns: []abi.Watch{{Version: "v1", Kind: "ConfigMap"}},
		Watches: []abi.Watch{watchOf("Secret", "label:swap"), {Group: "absent.example.dev", Version: "v1", Kind: "Gadget", Map: "label:swap", Optional: true}},
	}), opts)
	for i := range 4 {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Until(t, "all objects are reconciled", func() bool { return w.observer.behind() == 0 })
	w.onProbation(time.Hour)
	// It does not have the second watch, and has not run yet.
	w.engine.Runtime.Pause()
	bad := w.mustSwap(enginetest.WithManifest(t, enginetest.Traps, &abi.Manifest{Version: "2", Watches: []abi.Watch{watchOf("Secret", "label:swap")}}))
	link.Refuse()
	link.Cut()
	w.engine.Runtime.Resume()
	if g := w.verdict(bad); g.State != "failed" {
		t.Fatalf("revision %d: %+v", bad, g)
	}
	enginetest.Until(t, "the first module is live", func() bool { return w.engine.Module.Revision() == bad+1 })
	link.Resume()
}
