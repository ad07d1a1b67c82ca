// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

func (h *Host) patch(r *request) (any, *failure) {
	var patched any
	var fail *failure
	switch kind := str(r.msg, "patchType"); kind {
	case "merge":
		if _, ok := r.msg["patch"].(map[string]any); !ok {
			return nil, badRequest("a merge patch is a map")
		}
		patched = merge(clone(r.old), r.msg["patch"])
	case "json":
		patched, fail = jsonPatch(clone(r.old), r.msg["patch"])
	case "strategic":
		return nil, notServed("strategic patches")
	default:
		return nil, badRequest("patchType " + kind + " is not json, merge or strategic")
	}
	if fail != nil {
		return nil, fail
	}
	obj, ok := patched.(map[string]any)
	if !ok || idOf(obj) != r.id {
		return nil, apiFailure(400, "BadRequest", "a patch must not change the kind or the name of an object")
	}
	return h.overwrite(r, obj)
}

// merge applies a merge patch (RFC 7386).
func merge(into, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return cloneAny(patch)
	}
	m, ok := into.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	for k, v := range p {
		if v == nil {
			delete(m, k)
		} else {
			m[k] = merge(m[k], v)
		}
	}
	return m
}

// jsonPatch applies a JSON patch (RFC 6902).
func jsonPatch(doc, patch any) (any, *failure) {
	list, ok := patch.([]any)
	if !ok {
		return nil, badRequest("a json patch is an array")
	}
	for i, op := range list {
		var ok bool
		if doc, ok = jsonPatchOp(doc, op); !ok {
			return nil, apiFailure(422, "Invalid", "the server rejected our request due to an error in our request: operation "+
				strconv.Itoa(i)+" ("+str(op, "op")+" "+str(op, "path")+") does not apply")
		}
	}
	return doc, nil
}

func jsonPatchOp(doc, op any) (any, bool) {
	path, ok := pointer(str(op, "path"))
	if !ok {
		return nil, false
	}
	m, _ := op.(map[string]any)
	value := m["value"]
	switch how := str(op, "op"); how {
	case "test":
		have, ok := lookup(doc, path, position)
		return doc, ok && reflect.DeepEqual(have, value)
	case "add", "replace", "remove":
		return edit(doc, path, value, how)
	case "copy", "move":
		from, ok := pointer(str(op, "from"))
		if !ok {
			return nil, false
		}
		if value, ok = lookup(doc, from, position); !ok {
			return nil, false
		}
		value = cloneAny(value)
		if how == "move" {
			if doc, ok = edit(doc, from, nil, "remove"); !ok {
				return nil, false
			}
		}
		return edit(doc, path, value, "add")
	}
	return nil, false
}

// pointer splits a JSON pointer (RFC 6901).
func pointer(s string) ([]string, bool) {
	if s == "" {
		return nil, true
	}
	if s[0] != '/' {
		return nil, false
	}
	steps := strings.Split(s[1:], "/")
	for i, step := range steps {
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
	}
	return steps, true
}

// lookup returns the value at a path. at returns the index of an array element,
// or -1.
func lookup(doc any, path []string, at func(list []any, step string) int) (any, bool) {
	for _, step := range path {
		switch d := doc.(type) {
		case map[string]any:
			v, ok := d[step]
			if !ok {
				return nil, false
			}
			doc = v
		case []any:
			i := at(d, step)
			if i < 0 {
				return nil, false
			}
			doc = d[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// position parses the index of an element, or returns -1.
func position(list []any, step string) int {
	if i, err := strconv.Atoi(step); err == nil && i < len(list) && strconv.Itoa(i) == step {
		return max(i, -1)
	}
	return -1
}

// edit applies add, replace or remove at the path and returns the document.
func edit(doc any, path []string, value any, how string) (any, bool) {
	if len(path) == 0 {
		return value, how != "remove"
	}
	step, rest := path[0], path[1:]
	switch d := doc.(type) {
	case map[string]any:
		return editMap(d, step, rest, value, how)
	case []any:
		return editArray(d, step, rest, value, how)
	}
	return nil, false
}

func editMap(m map[string]any, step string, rest []string, value any, how string) (any, bool) {
	old, exists := m[step]
	switch {
	case !exists && (len(rest) > 0 || how != "add"):
		return nil, false
	case len(rest) == 0 && how == "remove":
		delete(m, step)
		return m, true
	}
	v, ok := edit(old, rest, value, how)
	m[step] = v
	return m, ok
}

func editArray(list []any, step string, rest []string, value any, how string) (any, bool) {
	i := position(list, step)
	switch end := len(rest) == 0; {
	case end && how == "add" && (step == "-" || step == strconv.Itoa(len(list))):
		return append(list, value), true
	case i < 0:
		return nil, false
	case end && how == "add":
		return slices.Insert(list, i, value), true
	case end && how == "remove":
		return slices.Delete(list, i, i+1), true
	}
	var ok bool
	list[i], ok = edit(list[i], rest, value, how)
	return list, ok
}
