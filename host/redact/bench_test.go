// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// BenchmarkLearn_OtherKind measures an object other than a Secret: a typical Deployment of about 4
// KiB.
func BenchmarkLearn_OtherKind(b *testing.B) {
	env := []any{}
	for range 20 {
		env = append(env, map[string]any{"name": "SERVICE_ADDRESS_TO_USE", "value": "https://service.default.svc.cluster.local:8443/path?time=2024-01-01T00:00:00Z"})
	}
	object, err := abi.AppendValue(nil, map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "creationTimestamp": "2024-01-01T00:00:00Z"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"env": env, "args": strings.Repeat("Some Args ", 100)}}}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	var v Values
	b.SetBytes(int64(len(object)))
	for b.Loop() {
		v.Learn(object)
	}
}
