// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/share"
)

// rustGuest returns a module in Rust that make guests-rust builds; without it
// the test is skipped.
func rustGuest(tb testing.TB, name string) []byte {
	tb.Helper()
	wasm, err := os.ReadFile(filepath.Join("..", "bin", "examples", name+".rust.wasm"))
	if err != nil {
		tb.Skipf("SKIPPED: %s in Rust is not built (make guests-rust): %v", name, err)
	}
	return wasm
}

// rustPod is a pod of about 4 KiB, as the cache has it.
func rustPod(labels map[string]any) []byte {
	var containers []any
	for i := range 5 {
		var env []any
		for j := range 9 {
			env = append(env, map[string]any{"name": fmt.Sprint("VARIABLE_", j), "value": fmt.Sprint("some value of a variable ", i*j)})
		}
		containers = append(containers, map[string]any{
			"name": fmt.Sprint("container-", i), "image": fmt.Sprint("registry.example.com/team/app:v1.2.", i), "env": env,
			"ports":     []any{map[string]any{"containerPort": 8080 + i, "name": "http", "protocol": "TCP"}},
			"resources": map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "512Mi"}, "requests": map[string]any{"cpu": "100m"}},
		})
	}
	for i := range 10 {
		labels[fmt.Sprint("app.kubernetes.io/label-", i)] = fmt.Sprint("value-", i)
	}
	return encoded(map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "web-0", "namespace": "shop", "uid": "5c2f1f3e-8f0c-4b0e-9a43-0f1f6f2d7c11", "labels": labels},
		"spec":     map[string]any{"containers": containers, "nodeName": "node-1", "restartPolicy": "Always"},
		"status":   map[string]any{"phase": "Running", "podIP": "10.0.0.1", "startTime": "2026-01-01T00:00:00Z"},
	})
}

func rustRequest(labels map[string]any) *abi.Request {
	return &abi.Request{
		ID: "8f3a-42", Controller: "benchguest", Attempt: 1, Object: rustPod(labels),
		Reason: abi.Reason{Type: abi.ReasonObjectUpdated}, Key: abi.Key{Namespace: "shop", Name: "web-0"},
	}
}

// TestRust_RunsLeakNothing makes 100,000 runs that read and declare in one
// instance whose memory may grow by one page, 64 KiB: less than a byte a run.
func TestRust_RunsLeakNothing(t *testing.T) {
	runs := 100_000
	if testing.Short() {
		runs = 10_000
	}
	const atStart = 17 << 16 // of the module: its stack of 1 MiB and its data
	m := loaded(t, rustGuest(t, "benchguest"), Config{Limits: share.Limits{Memory: atStart + 1<<16}, API: apiOf(nil), Concurrency: 1})
	req := rustRequest(map[string]any{"child": "yes"})
	guest, release, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for i := range runs {
		res, err := guest.Reconcile(t.Context(), req)
		if err != nil || res.Error != nil || res.Declared == nil || len(res.Declared.Apply) != 1 {
			t.Fatalf("run %d: %+v, %v", i, res, err)
		}
	}
}

// BenchmarkRust_Run is a run of a guest in Rust on an object of 4 KiB, the
// host's own part (BenchmarkReconcile_Empty4KiB) included.
func BenchmarkRust_Run(b *testing.B) {
	wasm := rustGuest(b, "benchguest")
	for name, labels := range map[string]map[string]any{"read3": {}, "read3+child": {"child": "yes"}} {
		b.Run(name, func(b *testing.B) {
			m := loaded(b, wasm, Config{API: apiOf(nil)})
			req := rustRequest(labels)
			b.ReportAllocs()
			guest, release, err := m.Acquire(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer release()
			for b.Loop() {
				if res, err := guest.Reconcile(b.Context(), req); err != nil || res.Error != nil {
					b.Fatal(res.Error, err)
				}
			}
			b.ReportMetric(float64(len(req.Object)), "object-bytes")
		})
	}
}

// BenchmarkRust_Load is loading the example without a cache, one instance
// included.
func BenchmarkRust_Load(b *testing.B) {
	wasm := rustGuest(b, "configmapgenerator")
	for b.Loop() {
		m, err := Load(b.Context(), wasm, Config{API: apiOf(nil)})
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
