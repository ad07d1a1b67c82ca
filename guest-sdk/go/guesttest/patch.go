package guesttest

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

func (h *Host) patch(r *request) (any, *failure) {
	old, ok := h.store.objects[r.id]
	if !ok {
		return nil, h.notFound(r)
	}
	var patched any
	var fail *failure
	switch kind := str(r.msg, "patchType"); kind {
	case "merge":
		if _, ok := r.msg["patch"].(map[string]any); !ok {
			return nil, badRequest("a merge patch is a map")
		}
		patched = merge(clone(old), r.msg["patch"])
	case "json":
		patched, fail = jsonPatch(clone(old), r.msg["patch"])
	case "strategic":
		return nil, notServed("strategic patches")
	default:
		return nil, badRequest("patchType " + kind + " is none of json, merge, strategic")
	}
	if fail != nil {
		return nil, fail
	}
	obj, ok := patched.(map[string]any)
	if !ok || idOf(obj) != r.id {
		return nil, apiFailure(400, "BadRequest", "a patch must not change the kind or the name of an object")
	}
	return h.overwrite(r, old, obj)
}

// merge is RFC 7386.
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

// jsonPatch is RFC 6902.
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
	switch str(op, "op") {
	case "test":
		have, ok := lookup(doc, path)
		return doc, ok && reflect.DeepEqual(have, value)
	case "add":
		return edit(doc, path, value, "add")
	case "replace":
		return edit(doc, path, value, "replace")
	case "remove":
		return edit(doc, path, nil, "remove")
	case "copy", "move":
		from, ok := pointer(str(op, "from"))
		if !ok {
			return nil, false
		}
		if value, ok = lookup(doc, from); !ok {
			return nil, false
		}
		value = cloneAny(value)
		if str(op, "op") == "move" {
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

func lookup(doc any, path []string) (any, bool) {
	for _, step := range path {
		switch d := doc.(type) {
		case map[string]any:
			v, ok := d[step]
			if !ok {
				return nil, false
			}
			doc = v
		case []any:
			i, ok := index(step, len(d)-1)
			if !ok {
				return nil, false
			}
			doc = d[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// index reads a position of an array, from 0 to last.
func index(step string, last int) (int, bool) {
	i, err := strconv.Atoi(step)
	return i, err == nil && i >= 0 && i <= last && strconv.Itoa(i) == step
}

// edit carries out add, replace or remove at the path and returns the document.
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
	if len(rest) == 0 && how == "add" {
		if step == "-" {
			return append(list, value), true
		}
		i, ok := index(step, len(list))
		if !ok {
			return nil, false
		}
		return slices.Insert(list, i, value), true
	}
	i, ok := index(step, len(list)-1)
	if !ok {
		return nil, false
	}
	if len(rest) == 0 && how == "remove" {
		return slices.Delete(list, i, i+1), true
	}
	list[i], ok = edit(list[i], rest, value, how)
	return list, ok
}
