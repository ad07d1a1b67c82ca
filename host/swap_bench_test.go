package host

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// goModule is an example built by the standard toolchain, some 3 MB.
func goModule(b *testing.B) []byte {
	b.Helper()
	module, err := os.ReadFile("../bin/examples/configmapgenerator.wasm")
	if err != nil {
		b.Skip("run make guests: ", err)
	}
	return module
}

// BenchmarkPrepare_Cached is a swap to a module that is in the compilation
// cache, by steps that the caller waits for.
func BenchmarkPrepare_Cached(b *testing.B) {
	module := goModule(b)
	cfg := Config{CacheDir: b.TempDir(), KeepFor: -1}
	load(b, module, cfg)
	m := load(b, variant(module, 1), cfg)
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

// BenchmarkSwap_Pause measures how late runs of a small guest are, one each
// millisecond, while nothing else goes on, while a Go module of 3 MB is compiled
// beside them and takes over, and while one from the cache does.
func BenchmarkSwap_Pause(b *testing.B) {
	module := goModule(b)
	cfg := Config{Limits: Limits{Timeout: time.Minute}, KeepFor: -1, CacheDir: b.TempDir()}
	load(b, module, cfg)
	runs := load(b, wasm.Modes, cfg)
	other := load(b, wasm.Empty, cfg) // has the processor for its swaps, and no runs
	late := map[string][]time.Duration{}
	phase := func(name string, f func()) { late[name] = append(late[name], paced(b, runs, f)...) }
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
	}
}

// paced runs a guest each millisecond until f returns, and returns how long
// after its time each run ended.
func paced(b *testing.B, m *Module, f func()) (late []time.Duration) {
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
