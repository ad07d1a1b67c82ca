// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmctl/wasmctl/internal/memapi"
)

// normalObjects returns objects as lines that are the same after two paths to the same result: a
// line for each value, under the object's name. Times, and fields that the API server counts, are
// omitted. An observed generation is compared with the object's own. Of a generated name, only the
// prefix counts.
func normalObjects(objects []map[string]any) []string {
	var all [][]string
	for _, content := range objects {
		o := (&unstructured.Unstructured{Object: content}).DeepCopy()
		name := nameOf(o.Object)
		if o.GetGenerateName() != "" {
			name = memapi.GVKName(o.GroupVersionKind()) + " " + o.GetNamespace() + "/" + o.GetGenerateName() + "*"
		}
		if o.GetDeletionTimestamp() != nil {
			name += " (being deleted)"
		}
		normalise(o.Object, o.GetGeneration())
		values := flatten(o.Object)
		lines := []string{name}
		for _, path := range slices.SortedFunc(maps.Keys(values), comparePaths) {
			lines = append(lines, name+" "+path+": "+values[path])
		}
		all = append(all, lines)
	}
	slices.SortFunc(all, slices.Compare)
	return slices.Concat(all...)
}

// normalise replaces times and observed generations.
func normalise(v any, generation int64) any {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if n, ok := e.(int64); ok && key == "observedGeneration" {
				v[key] = "the generation"
				if n != generation {
					v[key] = "an older generation"
				}
				continue
			}
			v[key] = normalise(e, generation)
		}
	case []any:
		for i, e := range v {
			v[i] = normalise(e, generation)
		}
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			return "a time"
		}
	}
	return v
}
