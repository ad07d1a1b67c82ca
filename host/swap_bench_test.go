// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"os"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// goModule is an example built by the standard toolchain, some 3 MB.
func goModule(b *testing.B) []byte {
	b.Helper()
	module, err := os.ReadFile("../bin/examples/configmapgenerator.wasm")
	if err != nil {
		b.Skip("SKIPPED: the examples are not built: make guests: ", err)
	}
	return module
}

// BenchmarkPrepare_Cached is a swap to a module that is in the compilation
// cache, by steps that the caller waits for.
func BenchmarkPrepare_Cached(b *testing.B) {
	module := goModule(b)
	cfg := Config{Code: load.Options{CacheDir: b.TempDir()}, Keep: Keep{Code: -1}}
	loaded(b, module, cfg)
	m := loaded(b, variant(module, 1), cfg)
	n := 0
	for b.Loop() {
		n++
		if n%2 == 1 {
			swap(b, m, module)
		} else {
			swap(b, m, variant(module, 1))
		}
	}
}

// BenchmarkSwap_FirstRuns is how long the first four runs at once take after a swap to a
// Go module of 3 MB from the cache, of a module that has made four at once before.
func BenchmarkSwap_FirstRuns(b *testing.B) {
	module, cfg, req := example(b)
	cfg.Code.CacheDir, cfg.Keep.Code, cfg.Concurrency = b.TempDir(), -1, 4
	loaded(b, module, cfg)
	m := loaded(b, variant(module, 1), cfg)
	atOnce := func() {
		var wg, all sync.WaitGroup
		all.Add(cfg.Concurrency)
		for range cfg.Concurrency {
			wg.Go(func() {
				guest, release, err := m.Acquire(b.Context())
				if err != nil {
					b.Error(err)
					return
				}
				defer release()
				all.Done() // each has an instance of its own
				all.Wait()
				if _, err := guest.Reconcile(b.Context(), req); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
	atOnce()
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		if n%2 == 0 {
			swap(b, m, module)
		} else {
			swap(b, m, variant(module, 1))
		}
		begin := time.Now()
		atOnce()
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "first-p50-µs")
	b.ReportMetric(float64(took[len(took)*9/10].Microseconds()), "first-p90-µs")
}

// BenchmarkSwap_Pause measures how late runs of a small guest are, one each
// millisecond, while nothing else goes on, while a Go module of 3 MB is compiled
// beside them and takes over, and while one from the cache does. On a machine
// that others use too, own-max says more: what is no fault of those.
func BenchmarkSwap_Pause(b *testing.B) {
	module := goModule(b)
	cfg := Config{Limits: share.Limits{Timeout: time.Minute}, Keep: Keep{Code: -1}, Code: load.Options{CacheDir: b.TempDir()}}
	loaded(b, module, cfg)
	runs := loaded(b, wasm.Modes, cfg)
	other := loaded(b, wasm.Empty, cfg) // has the CPU for its swaps, and no runs
	late, held := map[string][]time.Duration{}, map[string]time.Duration{}
	phase := func(name string, f func()) {
		before := ownPauses()
		late[name] = append(late[name], runPeriodically(b, runs, f)...)
		held[name] = max(held[name], longestSince(before))
	}
	for n := 0; b.Loop(); n++ {
		phase("quiet", func() { <-time.After(2 * time.Second) })
		phase("compiling", func() { swap(b, other, variant(module, n)) })
		swap(b, other, wasm.Empty)
		for range 5 {
			phase("cached", func() { swap(b, other, module) })
			swap(b, other, wasm.Empty)
		}
	}
	for name, all := range late {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), name+"-p50-µs")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), name+"-p99-µs")
		b.ReportMetric(float64(held[name].Microseconds()), name+"-own-max-µs")
	}
}

// pauses are what makes goroutines wait that could run: for Go's scheduler, and
// for the garbage collector. A thread that the operating system does not run
// shows in them only where others wait for it.
var pauses = [...]string{"/sched/latencies:seconds", "/sched/pauses/total/gc:seconds", "/sched/pauses/total/other:seconds"}

// ownPauses counts the pauses of this process until now.
func ownPauses() []metrics.Sample {
	samples := make([]metrics.Sample, len(pauses))
	for i, name := range pauses {
		samples[i].Name = name
	}
	metrics.Read(samples)
	return samples
}

// longestSince returns the longest pause since some were counted.
func longestSince(before []metrics.Sample) (longest time.Duration) {
	for i, now := range ownPauses() {
		h, old := now.Value.Float64Histogram(), before[i].Value.Float64Histogram()
		for j, n := range h.Counts {
			if n > old.Counts[j] {
				longest = max(longest, time.Duration(h.Buckets[j+1]*float64(time.Second)))
			}
		}
	}
	return longest
}

// runPeriodically runs a guest each millisecond until f returns, and returns how long
// after its time each run ended.
func runPeriodically(b *testing.B, m *Module, f func()) (late []time.Duration) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for next := time.Now(); ctx.Err() == nil; next = next.Add(time.Millisecond) {
			for time.Now().Before(next) {
				<-tick.C
			}
			g, release, err := m.Acquire(b.Context())
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := g.Reconcile(b.Context(), request(0)); err != nil {
				b.Error(err)
			}
			release()
			late = append(late, time.Since(next))
		}
	})
	f()
	stop()
	wg.Wait()
	return late
}
