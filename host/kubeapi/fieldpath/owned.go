// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
)

// Owned yields the fields in an entry of metadata.managedFields ("FieldsV1") of an object. A value
// that the API server owns as a whole is one field.
func Owned(fields, object map[string]any) Fields {
	return func(yield func(Path) bool) {
		o := owned{walk{yield: yield}}
		o.fields(fields, object)
	}
}

type owned struct{ walk }

func (o *owned) fields(fields map[string]any, value any) {
	leaf := len(fields) == 0
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		below, _ := fields[name].(map[string]any)
		switch kind, rest, _ := strings.Cut(name, ":"); kind {
		case "f":
			in, _ := value.(map[string]any)
			o.push(step{key: rest})
			o.fields(below, in[rest])
			o.pop()
		case "k":
			item := itemOf(value, rest)
			o.push(step{item: item})
			o.fields(below, item)
			o.pop()
		case ".": // existence, which each field inside implies
			leaf = leaf || len(fields) == 1
		default: // a value of a set, or an item by position
			leaf = true
		}
		if o.over {
			return
		}
	}
	if leaf && len(o.path) > 0 {
		o.leaf()
	}
}

// itemOf returns the item of a list with these keys. If there is none, it returns the keys.
func itemOf(list any, keys string) map[string]any {
	var want map[string]any
	if err := json.Unmarshal([]byte(keys), &want); err != nil {
		return map[string]any{}
	}
	all, _ := list.([]any)
	for _, v := range all {
		item, _ := v.(map[string]any)
		if item != nil && hasKeys(item, want) {
			return item
		}
	}
	return want
}

func hasKeys(item, want map[string]any) bool {
	for key, value := range want {
		if !equal(item[key], value) {
			return false
		}
	}
	return true
}
