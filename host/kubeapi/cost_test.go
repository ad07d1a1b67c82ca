package kubeapi

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// cost is what a call takes: bytes that it allocates, and time.
func cost(f func()) (allocated uint64, took time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	started := time.Now()
	f()
	took = time.Since(started)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, took
}

// TestFields_CheckCostsByTheSizeOfTheWrite: the check of a wide map at a great
// depth, all of it denied, takes little more memory than the request does.
func TestFields_CheckCostsByTheSizeOfTheWrite(t *testing.T) {
	wide := map[string]any{}
	for i := range 50_000 {
		wide[fmt.Sprint("k", i)] = int64(1)
	}
	for range 110 {
		wide = map[string]any{"a": wide}
	}
	api := offlineAPI(t, NewPolicy([]abi.Capability{{Resource: "configmaps", Verbs: []string{"*"}, Fields: []string{"data.b"}}}))
	ref := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"}, "data": wide}
	patch := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x", "patchType": "merge", "patch": map[string]any{"data": wide}}
	for op, req := range map[abi.Op]map[string]any{abi.OpAPICreate: {"object": ref}, abi.OpAPIApply: {"object": ref}, abi.OpAPIPatch: patch} {
		b := msg(t, req)
		var got abi.Response
		allocated, _ := cost(func() { got = api.Call(t.Context(), op, b) })
		if got.Status != abi.StatusDenied || allocated > 64<<20 {
			t.Errorf("%s of %d bytes: %v, %d MiB", op, len(b), got.Status, allocated>>20)
		}
	}
}
