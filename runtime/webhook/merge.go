// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"maps"

	"github.com/wasmctl/wasmctl/abi"
)

// merge returns the value with the changes from base to object. The parts that the guest did not change remain as they are in value, also
// those that base lacks because the guest's types do not know them.
func merge(value, base, object any) any {
	switch object := object.(type) {
	case map[string]any:
		value, exists := value.(map[string]any)
		base, known := base.(map[string]any)
		if exists || known {
			return mergeMap(value, base, object)
		}
	case []any:
		value, _ := value.([]any)
		base, known := base.([]any)
		if known && len(value) == len(base) { // otherwise the elements of value cannot be identified
			return mergeList(value, base, object)
		}
	}
	return object
}

func mergeMap(value, base, object map[string]any) map[string]any {
	merged := maps.Clone(value)
	if merged == nil {
		merged = map[string]any{}
	}
	for key := range base {
		if _, ok := object[key]; !ok {
			delete(merged, key)
		}
	}
	for key, to := range object {
		if from, known := base[key]; !known || !equal(from, to) {
			merged[key] = merge(value[key], from, to)
		}
	}
	return merged
}

// mergeList finds the element of base that each element of object was. value has the same elements as base.
func mergeList(value, base, object []any) []any {
	merged := make([]any, 0, len(object))
	first, last := common(base, object)
	merged = append(merged, value[:first]...)
	before, after := base[first:len(base)-last], object[first:len(object)-last]
	values := value[first : len(value)-last]
	for i, j := range origins(before, after) {
		if j < 0 {
			merged = append(merged, after[i])
			continue
		}
		merged = append(merged, merge(values[j], before[j], after[i]))
	}
	return append(merged, value[len(value)-last:]...)
}

// origins returns the index in before of each element of after, or -1 if the element is new. The origin is an equal element or, if there is
// none, one with the same name. An element without a name may also come from that of the same index, in lists of the same length.
func origins(before, after []any) []int {
	origin := make([]int, len(after))
	for i := range origin {
		origin[i] = -1
	}
	taken := make([]bool, len(before))
	for _, identity := range []func(any) (string, bool){contentOf, nameOf} {
		candidates := map[string][]int{}
		for j, v := range before {
			if id, ok := identity(v); ok && !taken[j] {
				candidates[id] = append(candidates[id], j)
			}
		}
		for i, v := range after {
			id, ok := identity(v)
			if list := candidates[id]; ok && origin[i] < 0 && len(list) > 0 {
				origin[i], candidates[id] = list[0], list[1:]
				taken[list[0]] = true
			}
		}
	}
	for i, v := range after {
		if _, named := nameOf(v); !named && len(before) == len(after) && origin[i] < 0 && !taken[i] {
			origin[i] = i
		}
	}
	return origin
}

// contentOf identifies an element by its content.
func contentOf(v any) (string, bool) {
	b, err := abi.AppendValue(nil, v)
	return string(b), err == nil
}

// nameOf identifies an element by its name, as most lists of Kubernetes do.
func nameOf(v any) (string, bool) {
	m, _ := v.(map[string]any)
	name, ok := m["name"].(string)
	return name, ok
}
