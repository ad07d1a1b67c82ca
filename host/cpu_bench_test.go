// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// example is the module of the README with a generator to reconcile and an API
// that accepts whatever it writes.
func example(tb testing.TB) (module []byte, cfg Config, req *abi.Request) {
	tb.Helper()
	module, err := os.ReadFile(filepath.Join("..", "bin", "examples", "configmapgenerator.wasm"))
	if err != nil {
		tb.Skip("SKIPPED: the examples are not built: make guests")
	}
	meta := map[string]any{"name": "web", "namespace": "default", "uid": "u-1", "resourceVersion": "7", "generation": int64(1)}
	answer := encoded(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": map[string]any{"content": "hello"}})
	cfg.API = func(*abi.Manifest) (operation.API, error) { return fixedAPI(answer), nil }
	req = request(0)
	req.Object = encoded(map[string]any{
		"apiVersion": "examples.wasmctl.dev/v1", "kind": "ConfigMapGenerator", "metadata": meta, "spec": map[string]any{"content": "hello"},
	})
	return module, cfg, req
}

// fixedAPI answers every operation with the same object.
type fixedAPI []byte

func (a fixedAPI) Call(context.Context, abi.Op, []byte) abi.Response { return abi.Response{Body: a} }

// BenchmarkCPU_Example is a reconcile of the example. It reports the median of many short
// rounds.
func BenchmarkCPU_Example(b *testing.B) {
	module, cfg, req := example(b)
	guest := acquire(b, loaded(b, module, cfg))
	var took []time.Duration
	for b.Loop() {
		const calls = 20
		start := time.Now()
		for range calls {
			if res, err := guest.Reconcile(b.Context(), req); err != nil || res.Error != nil {
				b.Fatal(err, res.Error)
			}
		}
		took = append(took, time.Since(start)/calls)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(quantile(took, 0.5))/1e3, "us")
}

// quantile sorts what it is given.
func quantile(ds []time.Duration, q float64) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	slices.Sort(ds)
	return ds[int(q*float64(len(ds)-1))]
}

// BenchmarkCPU_StopTheWorld is how long it takes to stop the world, as each
// garbage collection does, while a guest spins.
func BenchmarkCPU_StopTheWorld(b *testing.B) {
	g := acquire(b, loaded(b, wasm.Work, Config{API: apiOf(nil)}))
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := g.Reconcile(ctx, work(100_000_000, 0)); err != nil && !errors.Is(err, context.Canceled) {
				b.Error(err)
				return
			}
		}
	})
	var took []time.Duration
	var stats runtime.MemStats
	for b.Loop() {
		time.Sleep(time.Millisecond) //nolint:forbidigo // real time is what is measured
		start := time.Now()
		runtime.ReadMemStats(&stats)
		took = append(took, time.Since(start))
	}
	cancel()
	wg.Wait()
	b.ReportMetric(0, "ns/op")
	for name, q := range map[string]float64{"ms-p50": 0.5, "ms-p99": 0.99, "ms-max": 1} {
		b.ReportMetric(float64(quantile(took, q))/1e6, name)
	}
}

// BenchmarkCPU_Runaway is a hundred modules that reconcile from time to time,
// without and with one or four modules beside them that spin until their time is
// over, and then again. It reports how late the calls of the hundred end, from
// when they were due, without and with them, and how long after its time a
// runaway is stopped.
func BenchmarkCPU_Runaway(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			cfg := Config{Process: Process{CPUs: share.NewCPUScheduler(runtime.GOMAXPROCS(0))}}
			fleet := make([]*lease, 100)
			for i := range fleet {
				fleet[i] = acquire(b, loaded(b, wasm.Work, cfg))
			}
			cfg.Limits.Timeout = 50 * time.Millisecond
			var runaways []*lease
			for range n {
				runaways = append(runaways, acquire(b, loaded(b, wasm.Modes, cfg)))
			}
			var alone, beside, late []time.Duration
			for b.Loop() {
				alone = append(alone, drive(b, fleet, 2*time.Second)...)
				stop := make(chan struct{})
				var wg sync.WaitGroup
				var mu sync.Mutex
				for _, g := range runaways {
					wg.Go(func() {
						ds := spin(b, g, cfg.Limits.Timeout, stop)
						mu.Lock()
						defer mu.Unlock()
						late = append(late, ds...)
					})
				}
				beside = append(beside, drive(b, fleet, 2*time.Second)...)
				close(stop)
				wg.Wait()
			}
			b.ReportMetric(0, "ns/op")
			for name, d := range map[string]time.Duration{
				"us-alone-p50": quantile(alone, 0.5), "us-alone-p99": quantile(alone, 0.99),
				"us-beside-p50": quantile(beside, 0.5), "us-beside-p99": quantile(beside, 0.99),
				"us-late-p50": quantile(late, 0.5), "us-late-p99": quantile(late, 0.99), "us-late-max": quantile(late, 1),
			} {
				b.ReportMetric(float64(d)/1e3, name)
			}
		})
	}
}

// drive makes each guest of the fleet reconcile every 50 ms, and returns how
// long after they were due their calls ended.
func drive(b *testing.B, fleet []*lease, total time.Duration) []time.Duration {
	b.Helper()
	const every = 50 * time.Millisecond
	var mu sync.Mutex
	var all []time.Duration
	var wg sync.WaitGroup
	var failed atomic.Bool
	start := time.Now()
	for i, g := range fleet {
		wg.Go(func() {
			var took []time.Duration
			due := start.Add(every * time.Duration(i) / time.Duration(len(fleet)))
			for ; due.Sub(start) < total; due = due.Add(every) {
				time.Sleep(time.Until(due)) //nolint:forbidigo // real time is what is measured
				if _, err := g.Reconcile(b.Context(), work(10_000, 0)); err != nil && !failed.Swap(true) {
					b.Error(err)
				}
				took = append(took, time.Since(due))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	wg.Wait()
	return all
}

// spin lets a guest run into its timeout again and again, and returns how long
// after that its calls ended.
func spin(b *testing.B, g *lease, timeout time.Duration, stop <-chan struct{}) []time.Duration {
	b.Helper()
	var late []time.Duration
	for {
		select {
		case <-stop:
			return late
		default:
		}
		start := time.Now()
		if _, err := g.Reconcile(b.Context(), request(2)); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("a guest that spins: %v", err)
			return late
		}
		late = append(late, time.Since(start)-timeout)
	}
}
