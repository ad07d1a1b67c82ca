package main

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestSwap_Pause measures how much later an event is reconciled while a swap
// goes on: it prints figures and asserts nothing of them. It runs for a minute or
// two, with WASMCTL_SWAP_PAUSE=1 only.
//
// "compiles" are the events of a swap to a module that has to be compiled (2.8
// MiB of the standard Go toolchain), "cached" those of the second after a swap to
// one that is in the compilation cache.
func TestSwap_Pause(t *testing.T) {
	if os.Getenv("WASMCTL_SWAP_PAUSE") == "" {
		t.Skip("SKIPPED: a measurement: set WASMCTL_SWAP_PAUSE=1")
	}
	module, err := os.ReadFile(exampleWasm(t, "configmapgenerator"))
	if err != nil {
		t.Fatal(err)
	}
	opts := swapOptions()
	opts.compile.aside = true
	opts.cacheDir, opts.probation, opts.timeout, opts.memoryBytes, opts.reconcileOnSwap = t.TempDir(), 0, 0, 0, reconcileNone
	w := newSwapping(t, module, opts)
	const objects = 400 // so many that none changes so often that it looks like a hot loop
	for i := range objects {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all objects are reconciled once", func() bool { return w.observer.behind() == 0 })
	stop := w.pace(objects, 150*time.Millisecond)
	var compiles, cached, none []span
	var took []time.Duration
	for round := range 6 {
		none = append(none, w.during(func() { pause(t.Context(), 4*time.Second) }))
		compiles = append(compiles, w.during(func() { w.mustSwap(numbered(module, round)) }))
		pause(t.Context(), time.Second)
		none = append(none, w.during(func() { pause(t.Context(), 4*time.Second) }))
		for _, g := range w.session.module.Generations() {
			w.session.module.Drop(g.Number) // so that it comes from the cache on disk
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

// pace changes objects, each worker one in every step, until stop is called.
func (w *swapping) pace(objects int, step time.Duration) (stop func()) {
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
