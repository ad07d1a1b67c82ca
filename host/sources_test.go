// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/isolate"
	"github.com/wasmctl/wasmctl/host/isolate/isolatetest"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// TestSources_AreToldToTheRun: what a guest asks for that differs each time, in this
// process and in another one, and that of one call only.
func TestSources_AreToldToTheRun(t *testing.T) {
	metric := func(int32, string, float64) abi.Status { return abi.StatusOK }
	for name, isolation := range map[string]isolate.Isolation{"here": nil, "isolated": &isolatetest.Isolation{}} {
		t.Run(name, func(t *testing.T) {
			g := acquire(t, loaded(t, wasm.Calls, Config{API: apiOf(nil), Observer: operation.Observer{Metric: metric}, Isolation: isolation}))
			for name, want := range map[string]abi.Source{
				"now_ms": abi.SourceClock, "mono_ns": abi.SourceClock, "random": abi.SourceRandom, "budget": abi.SourceLimit, "metric": abi.SourceMetric,
				"log_level": 0, "cancelled": 0, "cache_get": 0, "config_get": 0,
			} {
				var got abi.Source
				ctx := abi.WithRun(t.Context(), &abi.Run{Read: func(r abi.Read) { got |= r.Source }})
				object := sequence([]hostCall{{name, [4]uint32{0, requestAt, 1, 0}}})
				if _, err := g.Reconcile(ctx, &abi.Request{Object: object}); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got != want {
					t.Errorf("%s: sources %b, want %b", name, got, want)
				}
			}
		})
	}
}
