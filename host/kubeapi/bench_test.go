package kubeapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// BenchmarkTranscode_4KiB is what an answer costs beside the request itself.
func BenchmarkTranscode_4KiB(b *testing.B) {
	env := make([]any, 20)
	for i := range env {
		env[i] = map[string]any{"name": fmt.Sprintf("VARIABLE_%d", i), "value": strings.Repeat("x", 100), "n": i}
	}
	js, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "default", "labels": map[string]any{"app": "web"}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "registry/web:1", "env": env}}, "filler": strings.Repeat("y", 700)},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(js)))
	b.ReportAllocs()
	for b.Loop() {
		if got := transcode(js); got.Status != abi.StatusOK {
			b.Fatal(got.Status)
		}
	}
}

// BenchmarkCall_Denied is the way of a request up to the policy.
func BenchmarkCall_Denied(b *testing.B) {
	api := offlineAPI(b, nil)
	req := msg(b, map[string]any{"object": map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"}, "data": map[string]any{"k": "v"},
	}, "force": true})
	b.ReportAllocs()
	for b.Loop() {
		if got := api.Call(b.Context(), abi.OpAPIApply, req); got.Status != abi.StatusDenied {
			b.Fatal(got.Status)
		}
	}
}
