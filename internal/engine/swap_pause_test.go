// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// TestSwap_Pause measures how much later an event is reconciled during a swap. It prints
// figures and asserts nothing about them. It runs for a minute or two, and only with
// WASMCTL_SWAP_PAUSE=1.
//
// "compiles" are the events during a swap to a module that has to be compiled (2.8 MiB of
// the standard Go toolchain) in a process of its own; "cached" are those of the second
// after a swap to a module in the compilation cache.
func TestSwap_Pause(t *testing.T) {
	if os.Getenv("WASMCTL_SWAP_PAUSE") == "" {
		t.Skip("SKIPPED: a measurement: set WASMCTL_SWAP_PAUSE=1")
	}
	module, err := os.ReadFile("../../bin/examples/configmapgenerator.wasm") // of the standard toolchain
	if err != nil {
		t.Fatalf("%v: run make guests", err)
	}
	opts := swapOptions()
	opts.shared.Compile, opts.shared.CacheDir = compileOutOfProcess, t.TempDir()
	opts.Limits, opts.Rollout = nil, &v1alpha1.Rollout{Reconcile: v1alpha1.ReconcileNone}
	w := newSwapping(t, module, opts)
	const objects = 400 // enough that no object changes as often as in a hot loop
	for i := range objects {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Until(t, "all objects are reconciled once", func() bool { return w.observer.behind() == 0 })
	stop := w.editPeriodically(objects, 150*time.Millisecond)
	var compiles, cached, none []span
	var took []time.Duration
	for round := range 6 {
		none = append(none, w.during(func() { pause(t.Context(), 4*time.Second) }))
		compiles = append(compiles, w.during(func() { w.mustSwap(enginetest.Numbered(module, round)) }))
		pause(t.Context(), time.Second)
		none = append(none, w.during(func() { pause(t.Context(), 4*time.Second) }))
		for _, g := range w.engine.Module.Revisions() {
			w.engine.Module.Drop(g.Number) // the module must come from the cache on disk
		}
		swapped := w.during(func() { w.mustSwap(module) })
		took = append(took, swapped.to.Sub(swapped.from))
		cached = append(cached, span{swapped.from, swapped.to.Add(time.Second)})
		pause(t.Context(), 2*time.Second)
	}
	stop()
	w.observer.mu.Lock()
	defer w.observer.mu.Unlock()
	for _, phase := range []struct {
		name  string
		spans []span
	}{{"no swap", none}, {"compiles", compiles}, {"cached", cached}} {
		in, _ := w.observer.split(phase.spans)
		var longest time.Duration
		for _, s := range phase.spans {
			longest = max(longest, s.to.Sub(s.from))
		}
		t.Logf("%-9s %5d events, p50 %v, p90 %v, p99 %v; longest span %v", phase.name, len(in), quantile(in, 0.5), quantile(in, 0.9), quantile(in, 0.99), longest.Round(time.Millisecond))
	}
	slices.Sort(took)
	t.Logf("a cached swap takes %v (median), %v (longest)", took[len(took)/2], took[len(took)-1])
}

func (w *swapping) during(f func()) span {
	from := time.Now()
	f()
	return span{from, time.Now()}
}

// editPeriodically changes objects, one per worker and step, until stop is called.
func (w *swapping) editPeriodically(objects int, step time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			tick := time.NewTicker(step)
			defer tick.Stop()
			for n := worker; ; n += 4 {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				if err := w.put(w.t.Context(), n%objects, 2+n/objects); err != nil {
					w.t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// pause waits for a phase of the measurement.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// compileEnv makes this test binary a process that compiles.
const compileEnv = "WASMCTL_TEST_COMPILE"

// compileOutOfProcess compiles like wasmctl run, in a process that uses only idle CPU time.
func compileOutOfProcess(ctx context.Context, c load.Compilation) error {
	job, err := json.Marshal(c)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "chrt", "--idle", "0", os.Args[0])
	cmd.Env = []string{compileEnv + "=1", fmt.Sprintf("GOMAXPROCS=%d", max(1, c.Workers))}
	cmd.Stdin = bytes.NewReader(job)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// compile is the main function of the process that compiles.
func compile() {
	var c load.Compilation
	err := json.NewDecoder(os.Stdin).Decode(&c)
	if err == nil {
		err = c.Run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
