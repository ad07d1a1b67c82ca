// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a patch, because applying an operation to a list takes time in proportion to its length.
const (
	maxOperations = 10_000
	// maxShifts is the maximum number of elements that are added to a list, or removed, one by one. Otherwise the list is replaced.
	maxShifts = 100
)

var errTooDifferent = errors.New("the object differs in too many fields")

// operation is one operation of a JSON patch (RFC 6902). Value is nil for "remove".
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value *any   `json:"value,omitempty"`
}

// makePatch returns the JSON patch that turns the object of a request into the object of the guest, or nil if both are equal. base, if not
// nil, is the object as the guest has read it: then only the difference between base and object is applied. Fields that identify the object
// never change. The values are read only.
func makePatch(request, base, object map[string]any) ([]byte, error) {
	object = Apply(request, base, object)
	d := differ{deepest: -1}
	d.maps("", request, object, 0)
	if len(d.ops) > maxOperations {
		d = differ{deepest: 1}
		d.maps("", request, object, 0)
	}
	switch {
	case len(d.ops) > maxOperations:
		return nil, errTooDifferent
	case len(d.ops) == 0:
		return nil, nil
	}
	return json.Marshal(d.ops)
}

// Apply returns the object of a request after a webhook has returned object, and base if it is not nil; see abi.AdmissionResult. The values
// are read only.
func Apply(request, base, object map[string]any) map[string]any {
	if base != nil {
		object = mergeMap(request, base, object)
	}
	return withIdentity(request, object)
}

// withIdentity returns the object with the identity of the request's object.
func withIdentity(request, object map[string]any) map[string]any {
	object = restored(request, object, "apiVersion", "kind")
	meta, _ := request["metadata"].(map[string]any)
	changed, ok := object["metadata"].(map[string]any)
	if !ok {
		return restored(request, object, "metadata")
	}
	object["metadata"] = restored(meta, changed, "name", "namespace", "uid", "managedFields")
	return object
}

// restored returns a copy of m with the values that from has for the keys.
func restored(from, m map[string]any, keys ...string) map[string]any {
	m = maps.Clone(m)
	for _, key := range keys {
		if v, ok := from[key]; ok {
			m[key] = v
		} else {
			delete(m, key)
		}
	}
	return m
}

// differ collects the operations that turn one value into another.
type differ struct {
	ops []operation
	// deepest is the depth from which on values are replaced completely, or -1. The fields of metadata are one deeper: it also has fields that
	// are not compared.
	deepest int
}

func (d *differ) add(op, path string, value any) {
	if len(d.ops) <= maxOperations {
		d.ops = append(d.ops, operation{op, path, &value})
	}
}

func (d *differ) remove(path string) {
	if len(d.ops) <= maxOperations {
		d.ops = append(d.ops, operation{Op: "remove", Path: path})
	}
}

func (d *differ) values(path string, from, to any, depth int) {
	if d.deepest < 0 || depth < d.deepest || path == "/metadata" {
		switch from := from.(type) {
		case map[string]any:
			if to, ok := to.(map[string]any); ok {
				d.maps(path, from, to, depth)
				return
			}
		case []any:
			if to, ok := to.([]any); ok && d.lists(path, from, to, depth) {
				return
			}
		}
	}
	if !equal(from, to) {
		d.add("replace", path, to)
	}
}

func (d *differ) maps(path string, from, to map[string]any, depth int) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		at := path + "/" + pointer.Replace(key)
		if v, ok := to[key]; ok {
			d.values(at, from[key], v, depth+1)
		} else {
			d.remove(at)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if _, ok := from[key]; !ok {
			d.add("add", path+"/"+pointer.Replace(key), to[key])
		}
	}
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// lists returns false, without an operation, if the list must be replaced.
func (d *differ) lists(path string, from, to []any, depth int) bool {
	first, last := common(from, to)
	from, to = from[first:len(from)-last], to[first:len(to)-last]
	n := min(len(from), len(to))
	if len(from)-n > maxShifts || len(to)-n > maxShifts {
		return false
	}
	at := func(i int) string { return path + "/" + strconv.Itoa(first+i) }
	for i := range n {
		d.values(at(i), from[i], to[i], depth+1)
	}
	for i := len(from) - 1; i >= n; i-- {
		d.remove(at(i))
	}
	for i := n; i < len(to); i++ {
		d.add("add", at(i), to[i])
	}
	return true
}

// common returns how many elements at the beginning and at the end of two lists are equal.
func common(a, b []any) (first, last int) {
	n := min(len(a), len(b))
	for first < n && equal(a[first], b[first]) {
		first++
	}
	for last < n-first && equal(a[len(a)-1-last], b[len(b)-1-last]) {
		last++
	}
	return first, last
}

// equal compares values. An integer equals the float of its value.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case int64:
		if b, ok := b.(float64); ok {
			return float64(a) == b
		}
	case float64:
		if b, ok := b.(int64); ok {
			return a == float64(b)
		}
	}
	return a == b
}
