// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// randoms is the number of random objects of each version of a CustomResourceDefinition.
const randoms = 30

// isCRD reports whether an object is a CustomResourceDefinition.
func isCRD(o object) bool {
	version, _ := o["apiVersion"].(string)
	return o["kind"] == "CustomResourceDefinition" && groupOf(version) == "apiextensions.k8s.io"
}

// randomObjects returns random objects of all versions of a CustomResourceDefinition: the same in each call.
func randomObjects(crd object) []object {
	spec, _ := crd["spec"].(object)
	names, _ := spec["names"].(object)
	group, _ := spec["group"].(string)
	versions, _ := spec["versions"].([]any)
	var out []object
	for i, v := range versions {
		v, _ := v.(object)
		name, _ := v["name"].(string)
		schema, _ := v["schema"].(object)
		root, _ := schema["openAPIV3Schema"].(object)
		if root == nil {
			continue
		}
		r := rand.New(rand.NewPCG(1, uint64(i))) //nolint:gosec // not for secrets
		for n := range randoms {
			o, ok := randomValue(r, root, 0).(object)
			if !ok {
				continue
			}
			meta := identity()
			meta["name"] = "random-" + strconv.Itoa(n)
			meta["labels"], meta["annotations"] = object{"validate.wasmctl.dev/n": strconv.Itoa(n)}, object{"validate.wasmctl.dev/text": "größe"}
			o["apiVersion"], o["kind"], o["metadata"] = apiVersion(group, name), names["kind"], meta
			out = append(out, o)
		}
	}
	return out
}

// randomValue returns a value that the schema of a CustomResourceDefinition allows, except for its patterns and rules in CEL. Optional
// fields are left out at random.
func randomValue(r *rand.Rand, schema object, depth int) any {
	if values, ok := schema["enum"].([]any); ok && len(values) > 0 {
		return values[r.IntN(len(values))]
	}
	if v, ok := schema["default"]; ok && (schema["pattern"] != nil || r.IntN(4) == 0) {
		return v
	}
	number := func(key string, absent int64) int64 {
		switch n := schema[key].(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		}
		return absent
	}
	switch schema["type"] {
	case "object":
		return randomMap(r, schema, depth)
	case "array":
		least, most := number("minItems", 0), number("maxItems", number("minItems", 0)+3)
		items, _ := schema["items"].(object)
		list := make([]any, least+r.Int64N(max(1, min(most-least, 3)+1)))
		for i := range list {
			list[i] = randomValue(r, items, depth+1)
		}
		return list
	case "string":
		if schema["format"] == "date-time" {
			return "2026-01-01T00:00:00Z"
		}
		least := max(1, number("minLength", 1))
		return strings.Repeat("x", int(least-1)) + string(rune('a'+r.IntN(26)))
	case "boolean":
		return r.IntN(2) == 0
	case "number":
		return float64(number("minimum", 0)) + float64(r.IntN(8))/4
	}
	least := number("minimum", 0) // of an integer, and of int-or-string
	return least + r.Int64N(max(1, min(number("maximum", least+100)-least, 100)+1))
}

func randomMap(r *rand.Rand, schema object, depth int) object {
	m := object{}
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(object)
	keys := make([]string, 0, len(properties))
	for key := range properties {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		property, _ := properties[key].(object)
		needed := slices.Contains(required, any(key)) || depth == 0 && key == "spec"
		if patterned := property["pattern"] != nil && property["default"] == nil && property["enum"] == nil; needed || !patterned && depth < 12 && r.IntN(2) == 0 {
			m[key] = randomValue(r, property, depth+1)
		}
	}
	if values, ok := schema["additionalProperties"].(object); ok {
		for i := range r.IntN(3) {
			m["key"+strconv.Itoa(i)] = randomValue(r, values, depth+1)
		}
	}
	return m
}
