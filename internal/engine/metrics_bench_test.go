// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"log/slog"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// BenchmarkNoOpRun measures a run that does nothing, from its request to its log line,
// which is discarded: runner, applier, guest. "counted" has --metrics-address without any
// scrape. The difference is within the noise of a busy machine; BenchmarkRun of
// runtime/metrics isolates it.
func BenchmarkNoOpRun(b *testing.B) {
	for name, m := range map[string]*metrics.Registry{"plain": nil, "counted": metrics.New(metrics.Config{})} {
		b.Run(name, func(b *testing.B) {
			c := measured(m)
			module, err := host.Load(b.Context(), wasm.Empty, host.Config{Observer: operation.Observer{OnCall: c.Telemetry.OnCall()}})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = module.Close(context.Background()) }) // its guests are released
			noOpRuns(b, c, module)
		})
	}
}

// measured returns a Controller with only the parts that measure runs.
func measured(m *metrics.Registry) *Controller {
	c := New(&Shared{Metrics: m}, Options{}, slog.New(slog.DiscardHandler), nil)
	c.Identity = &Identity{}
	return c
}

// noOpRuns sends b.N requests, cycling through the objects. Requests for a waiting object
// are merged, so there are fewer runs than requests: compare ns/run.
func noOpRuns(b *testing.B, c *Controller, module *host.Module) {
	b.Helper()
	cfg := c.config()
	object, err := reflector.Pack(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "default", "uid": "1", "resourceVersion": "7"},
	}, reflector.Options{})
	if err != nil {
		b.Fatal(err)
	}
	a, err := applier.New(applier.Config{Controller: "bench", Module: module, Lookup: func(abi.Key) applier.Object { return object }})
	if err != nil {
		b.Fatal(err)
	}
	runs := 0 // by one worker; read after it has ended
	r, err := runner.New(runner.Config[queue.Reasons]{Concurrency: 1, OnStart: cfg.OnStart, OnEnd: cfg.OnEnd},
		func(ctx context.Context, item scheduler.Item[abi.Key, queue.Reasons]) scheduler.Next[queue.Reasons] {
			out := a.Apply(ctx, item.Key, item.Msg, item.ReadyAt)
			c.Ended(&out)
			runs++
			return scheduler.Next[queue.Reasons]{}
		})
	if err != nil {
		b.Fatal(err)
	}
	requests, ended := make(chan []scheduler.Request[abi.Key, queue.Reasons]), make(chan error)
	go func() {
		ended <- r.Run(b.Context(), runner.Input[abi.Key, queue.Reasons]{Requests: requests})
	}()
	batch := []scheduler.Request[abi.Key, queue.Reasons]{{Key: abi.Key{Namespace: "default"}, Msg: queue.Reasons{First: abi.Reason{Type: abi.ReasonResync}}}}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		batch[0].Key.Name = enginetest.ObjectName(i % 1000)
		requests <- append([]scheduler.Request[abi.Key, queue.Reasons]{}, batch...)
	}
	close(requests)
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(runs), "ns/run")
}

// TestCount_AllocatesNothing for a run that does nothing, once each bucket has its
// exemplar.
func TestCount_AllocatesNothing(t *testing.T) {
	c := measured(metrics.New(metrics.Config{}))
	cfg, onCall := c.config(), c.Telemetry.OnCall()
	out := applier.Outcome{ID: "a-1", Duration: 1000}
	if n := testing.AllocsPerRun(1000, func() {
		cfg.OnStart(1000, scheduler.Normal)
		onCall(abi.ExportReconcile, 1000, nil)
		c.Telemetry.Ended(&out)
		cfg.OnEnd(1000)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
