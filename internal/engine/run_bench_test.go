// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/replay"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// BenchmarkRun measures a run that does nothing, starting at the worker: applier, guest,
// history, metrics and the log line, for one of 1,000 objects of 4.7 KB.
func BenchmarkRun(b *testing.B) {
	log, err := logging.New(io.Discard, "json", 0)
	if err != nil {
		b.Fatal(err)
	}
	c := New(&Shared{Metrics: metrics.New(metrics.Config{})}, Options{Options: plan.Options{ControllerSpec: v1alpha1.ControllerSpec{HostSpec: v1alpha1.HostSpec{History: v1alpha1.DefaultHistory}}}}, log, nil)
	c.name = "bench"
	c.Telemetry.For("bench", kinds.Kind{Version: "v1", Resource: "configmaps", Kind: "ConfigMap"})
	module, err := host.Load(b.Context(), wasm.Empty, host.Config{Observer: operation.Observer{OnCall: c.Telemetry.OnCall(), OutsideRuns: c.Telemetry.OutsideRuns, Metric: c.Telemetry.Metric}, Secrets: c.Telemetry.Secrets})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = module.Close(context.Background()) }) // its guests are released
	objects := map[abi.Key]*reflector.Object{}
	keys := make([]abi.Key, 1000)
	for i := range keys {
		keys[i] = abi.Key{Namespace: "default", Name: enginetest.ObjectName(i)}
		objects[keys[i]], err = reflector.Pack(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{
				"name": keys[i].Name, "namespace": "default", "uid": "00000000-0000-4000-8000-000000000000", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z",
				"labels":          map[string]any{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": "web-1", "pod-template-hash": "abcdef"},
				"annotations":     map[string]any{"kubernetes.io/config.source": "api", "example.com/note": strings.Repeat("x", 100)},
				"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "00000000-0000-4000-8000-000000000001"}},
			},
			"data": map[string]any{"text": strings.Repeat("x", 4200)},
		}, reflector.Options{})
		if err != nil {
			b.Fatal(err)
		}
	}
	a, err := applier.New(applier.Config{
		Controller: "bench", Module: plainGuests{module, &c.recorder}, Observer: c, Logger: log,
		Lookup: func(key abi.Key) applier.Object { return objects[key] },
	})
	if err != nil {
		b.Fatal(err)
	}
	reasons := queue.Reasons{First: abi.Reason{Type: abi.ReasonResync}}
	for _, key := range keys {
		a.Apply(b.Context(), key, reasons, time.Time{})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		a.Apply(b.Context(), keys[i%len(keys)], reasons, time.Now())
		i++
	}
}

// plainGuests are the guests of a Controller without a rollout.
type plainGuests struct {
	*host.Module

	recorder *replay.Recorder
}

// Acquire implements applier.Module.
func (p plainGuests) Acquire(ctx context.Context) (abi.Guest, func(), error) {
	g, release, err := p.Module.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	g, release = p.recorder.Guest(g, release, p.Revision())
	return g, release, nil
}
