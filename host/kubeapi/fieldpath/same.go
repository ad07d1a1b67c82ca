// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
)

// unowned are the fields of metadata that no FieldsV1 has. If sent, they must be those of the object.
var unowned = []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation"}

// Unchanged reports whether an apply of sent by a manager would change nothing in the live object. fields is the FieldsV1 of the last
// apply of the manager. The result is true only if sent has exactly these fields, with the values in live. It needs no schema, because
// fields has the structure; values that the API server would convert, such as quantities, count as changes. apiVersion and
// kind must be equal. FieldsV1 does not tell a map that was empty from one that is owned as a whole. If other managers have filled it with
// exactly the values that sent has now, the result is true, although the apply would make the manager another owner of them.
func Unchanged(fields, sent, live map[string]any) bool {
	if !equal(sent["apiVersion"], live["apiVersion"]) || !equal(sent["kind"], live["kind"]) {
		return false
	}
	meta, _ := sent["metadata"].(map[string]any)
	has, _ := live["metadata"].(map[string]any)
	rest := maps.Clone(sent)
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		delete(rest, key)
	}
	own := map[string]any{}
	for key, value := range meta {
		switch {
		case !slices.Contains(unowned, key):
			own[key] = value
		case value != nil && !equal(value, has[key]):
			return false
		}
	}
	if len(own) > 0 {
		rest["metadata"] = own
	}
	return sameMap(fields, rest, live)
}

// same compares one value.
func same(fields map[string]any, sent, live any) bool {
	if len(fields) == 0 { // owned as a whole
		return identical(sent, live)
	}
	switch sent := sent.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		return ok && sameMap(fields, sent, live)
	case []any:
		live, ok := live.([]any)
		return ok && sameList(fields, sent, live)
	}
	return false
}

// identical is equal, but null differs from an absent value, which an apply may tell apart, and numbers are compared exactly.
func identical(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, identical)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, identical)
	case int64:
		if f, ok := b.(float64); ok {
			return exactly(f, a)
		}
	case float64:
		if i, ok := b.(int64); ok {
			return exactly(a, i)
		}
	}
	return equal(a, b)
}

// exactly reports whether a float64 has exactly the value of an integer.
func exactly(f float64, i int64) bool {
	return f >= -1<<63 && f < 1<<63 && int64(f) == i && float64(i) == f
}

// omitted reports whether the API server may have omitted a value because it is empty. Other empty maps may be structs: an apply of null
// has the same fields as an apply of {}, but an absent selector selects nothing, and an empty one everything.
func omitted(key string, v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0 && (key == "labels" || key == "annotations" || key == "data")
	}
	return false
}

func sameMap(fields, sent, live map[string]any) bool {
	n := len(fields)
	if _, ok := fields["."]; ok {
		n--
	}
	if n != len(sent) {
		return false
	}
	for key, value := range sent {
		below, ok := fields["f:"+key].(map[string]any)
		if !ok {
			return false
		}
		now, has := live[key]
		if has && !same(below, value, now) || !has && (len(below) > 0 || !omitted(key, value)) {
			return false
		}
	}
	return true
}

// sameList compares a list of items with keys, or a set of values. The order of the items must be that in live: an apply may change it.
func sameList(fields map[string]any, sent, live []any) bool {
	left := make([]listItem, 0, len(fields))
	for name, below := range fields {
		if name == "." {
			continue
		}
		item, ok := readItem(name, below)
		if !ok {
			return false
		}
		left = append(left, item)
	}
	if len(left) != len(sent) || len(left) > maxItems {
		return false
	}
	for _, value := range sent {
		i := 0
		for i < len(left) && !left[i].names(value) {
			i++
		}
		if i == len(left) {
			return false
		}
		item := left[i]
		left[i] = left[len(left)-1]
		left = left[:len(left)-1]
		at := 0
		for at < len(live) && !item.names(live[at]) {
			at++
		}
		if at == len(live) || !same(item.fields, value, live[at]) {
			return false
		}
		live = live[at+1:]
	}
	return true
}

// maxItems bounds the items of a list, because sameList takes the square of their number.
const maxItems = 256

// listItem is an item of a list in FieldsV1: an item with keys, or a value of a set.
type listItem struct {
	keys   map[string]any // nil for a value
	value  any
	fields map[string]any // below the item; empty if it is owned as a whole
}

func readItem(name string, below any) (item listItem, ok bool) {
	kind, text, _ := strings.Cut(name, ":")
	item.fields, ok = below.(map[string]any)
	if !ok {
		return item, false
	}
	switch kind {
	case "k":
		return item, json.Unmarshal([]byte(text), &item.keys) == nil && item.keys != nil
	case "v":
		return item, json.Unmarshal([]byte(text), &item.value) == nil && item.value != nil
	}
	return item, false // by position
}

// names reports whether a value of a list is this item. A key with a default can be absent from a declared item, and then FieldsV1 does
// not have the field of the key.
func (l *listItem) names(value any) bool {
	if l.keys == nil {
		return identical(l.value, value)
	}
	item, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for key, want := range l.keys {
		got, has := item[key]
		_, owned := l.fields["f:"+key]
		if has && !identical(want, got) || !has && (owned || len(l.fields) == 0) {
			return false
		}
	}
	return true
}
