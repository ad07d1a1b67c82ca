// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"testing"

	"github.com/wasmctl/wasmctl/internal/memapi"
)

// TestUnknown_NamesAFieldThatTheSchemaLacks: it returns the first one by name, and none if
// unknown fields are preserved.
func TestUnknown_NamesAFieldThatTheSchemaLacks(t *testing.T) {
	kinds, err := memapi.ParseCRD([]byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "as.e.dev"},
		"spec": {"group": "e.dev", "scope": "Namespaced", "names": {"kind": "A", "plural": "as"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
			"text": {"type": "string"}, "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			"list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}}}}}}}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for want, spec := range map[string]map[string]any{
		"":               {"text": "a", "any": map[string]any{"b": "c"}, "list": []any{map[string]any{"x": int64(1)}}},
		"spec.a":         {"text": "a", "a": "b", "b": "c"},
		"spec.list[1].y": {"list": []any{map[string]any{}, map[string]any{"y": "z"}}},
	} {
		object := map[string]any{"apiVersion": "e.dev/v1", "kind": "A", "metadata": map[string]any{"name": "n"}, "spec": spec}
		if got := kinds[0].Unknown(object); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := (&memapi.Kind{}).Unknown(map[string]any{"x": "y"}); got != "" {
		t.Errorf("without a schema: %q", got)
	}
}
