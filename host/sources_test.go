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
			op := [4]uint32{requestAt, 1, dstAt}
			for call, want := range map[hostCall]abi.Source{
				{"clock_time_get", [4]uint32{0, 1, dstAt}}: abi.SourceClock, {"clock_time_get", [4]uint32{1, 1, dstAt}}: abi.SourceClock,
				{"random_get", [4]uint32{dstAt, 8}}: abi.SourceRandom, {"budget", op}: abi.SourceLimit, {"metric", [4]uint32{0, requestAt, 1}}: abi.SourceMetric,
				{"log_level", op}: 0, {"cancelled", op}: 0, {"cache_get", op}: 0, {"config_get", op}: 0,
			} {
				var got abi.Source
				ctx := abi.WithRun(t.Context(), &abi.Run{Read: func(r abi.Read) { got |= r.Source }})
				object := sequence([]hostCall{call})
				if _, err := g.Reconcile(ctx, &abi.Request{Object: object}); err != nil {
					t.Fatalf("%v: %v", call, err)
				}
				if got != want {
					t.Errorf("%v: sources %b, want %b", call, got, want)
				}
			}
		})
	}
}
