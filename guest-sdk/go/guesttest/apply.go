// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"reflect"
	"slices"
	"sort"
	"strings"
)

// fieldSet has the fields that a manager applied, as paths to leaves. A step of
// a path is a key of a map, or key=value for an element of a keyed list.
type fieldSet map[string][]string

func (f fieldSet) add(path []string) { f[strings.Join(path, "\x00")] = append([]string(nil), path...) }

// listKeys has, for each list that is merged by a key, the name of that key.
// All other lists are one value.
var listKeys = map[string]string{
	"ownerReferences": "uid", "conditions": "type", "containers": "name", "initContainers": "name", "env": "name",
	"volumes": "name", "volumeMounts": "mountPath", "ports": "name", "imagePullSecrets": "name",
}

// listKey returns the key of the elements of the list with that name, or "".
func listKey(name string, list []any) string {
	key := listKeys[name]
	for _, e := range list {
		if str(e, key) == "" {
			return ""
		}
	}
	return key
}

// fields collects the leaves of v.
func fields(v any, path []string, into fieldSet) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			fields(e, append(path, k), into)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		if key := listKey(path[len(path)-1], v); key != "" {
			for _, e := range v {
				fields(e, append(path, key+"="+str(e, key)), into)
			}
			return
		}
	}
	into.add(path)
}

// mine returns the fields of an applied object that its manager owns: all
// except those that identify the object.
func mine(obj map[string]any, sub string) fieldSet {
	set := fieldSet{}
	for k, v := range obj {
		switch {
		case k == "apiVersion" || k == "kind" || (k == "status") != (sub == "status"):
		case k == "metadata":
			for mk, mv := range metadata(obj) {
				if !slices.Contains(bookkeeping, mk) {
					fields(mv, []string{k, mk}, set)
				}
			}
		default:
			fields(v, []string{k}, set)
		}
	}
	return set
}

// bookkeeping are the metadata fields that identify an object or that the API
// server maintains.
var bookkeeping = []string{"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields"}

func (h *Host) apply(r *request) (any, *failure) {
	if metadata(r.object)["managedFields"] != nil {
		return nil, apiFailure(400, "BadRequest", "metadata.managedFields must be nil")
	}
	manager := str(r.msg, "fieldManager")
	if manager == "" {
		manager = "wasmctl/" + h.manifest.Name
	}
	set := mine(r.object, r.sub)
	if r.sub != "" {
		manager += " " + r.sub // a manager has a separate set for each subresource
	}
	switch {
	case r.old != nil:
		return h.applyOver(r, manager, set)
	case r.sub != "":
		return nil, h.notFound(r)
	}
	obj := clone(r.object)
	delete(obj, "status")
	body, fail := h.insert(r, obj)
	h.own(r, manager, set, fail)
	return body, fail
}

// applyOver applies to an existing object.
func (h *Host) applyOver(r *request, manager string, set fieldSet) (any, *failure) {
	taken := h.conflicts(r, manager, set)
	if len(taken) > 0 && !r.bool("force") {
		return nil, apiFailure(409, "Conflict", "Apply failed with conflicts: "+describe(taken))
	}
	obj := clone(r.old)
	h.drop(r, manager, set, obj)
	mergeApply(obj, r.object)
	body, fail := h.overwrite(r, obj)
	if fail == nil && !h.dry(r) {
		for _, c := range taken { // with force, only this manager owns them now
			delete(h.store.applied[r.id][c.manager], strings.Join(c.path, "\x00"))
		}
	}
	h.own(r, manager, set, fail)
	return body, fail
}

// drop removes from obj the fields that manager applied before and no longer
// applies.
func (h *Host) drop(r *request, manager string, set fieldSet, obj map[string]any) {
	var paths [][]string
	for at, path := range h.store.applied[r.id][manager] {
		if _, still := set[at]; !still && !h.ownedByOther(r, manager, at) {
			paths = append(paths, path)
		}
	}
	// Remove the key of a list element last: the other fields are found by it.
	sort.Slice(paths, func(i, j int) bool { return !isKey(paths[i]) && isKey(paths[j]) })
	for _, path := range paths {
		remove(obj, path)
	}
}

func isKey(path []string) bool {
	n := len(path)
	return n > 1 && strings.HasPrefix(path[n-2], path[n-1]+"=")
}

// claim is a field that another manager applied.
type claim struct {
	manager string
	path    []string
}

func describe(claims []claim) string {
	var list []string
	for _, c := range claims {
		list = append(list, "."+strings.Join(c.path, ".")+" of "+c.manager)
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}

// conflicts lists the fields of set that another manager applied and whose
// values would change.
func (h *Host) conflicts(r *request, manager string, set fieldSet) []claim {
	var taken []claim
	for other, theirs := range h.store.applied[r.id] {
		for at, path := range theirs {
			if _, both := set[at]; both && other != manager && !reflect.DeepEqual(find(r.old, path), find(r.object, path)) {
				taken = append(taken, claim{other, path})
			}
		}
	}
	return taken
}

func (h *Host) ownedByOther(r *request, manager, at string) bool {
	for other, theirs := range h.store.applied[r.id] {
		if _, ok := theirs[at]; ok && other != manager {
			return true
		}
	}
	return false
}

// own records the fields that manager applied.
func (h *Host) own(r *request, manager string, set fieldSet, fail *failure) {
	if fail != nil || h.dry(r) || h.store.objects[r.id] == nil {
		return
	}
	if h.store.applied[r.id] == nil {
		h.store.applied[r.id] = map[string]fieldSet{}
	}
	h.store.applied[r.id][manager] = set
}

// find returns the value at the path, or nil.
func find(v any, path []string) any {
	v, _ = lookup(v, path, element)
	return v
}

// element returns the index of the element that matches a step key=value, or
// -1.
func element(list []any, step string) int {
	key, value, _ := strings.Cut(step, "=")
	return slices.IndexFunc(list, func(e any) bool { return str(e, key) == value })
}

// remove removes the leaf at the path, and also maps and elements that become
// empty.
func remove(v any, path []string) (empty bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	step := path[0]
	if len(path) == 1 {
		delete(m, step)
		return len(m) == 0
	}
	if list, ok := m[step].([]any); ok {
		i := element(list, path[1])
		if i < 0 {
			return false
		}
		if len(path) == 2 || remove(list[i], path[2:]) {
			list = slices.Delete(slices.Clone(list), i, i+1)
			m[step] = list
		}
		if len(list) == 0 {
			delete(m, step)
		}
		return len(m) == 0
	}
	if remove(m[step], path[1:]) {
		delete(m, step)
	}
	return len(m) == 0
}

// mergeApply merges the fields of applied into obj.
func mergeApply(obj, applied map[string]any) {
	for k, v := range applied {
		switch v := v.(type) {
		case map[string]any:
			inner, ok := obj[k].(map[string]any)
			if !ok {
				inner = map[string]any{}
				obj[k] = inner
			}
			mergeApply(inner, v)
		case []any:
			obj[k] = mergeList(obj[k], k, v)
		default:
			obj[k] = v
		}
	}
}

func mergeList(old any, name string, applied []any) any {
	key := listKey(name, applied)
	have, _ := old.([]any)
	if key == "" || len(applied) == 0 {
		return cloneAny(applied)
	}
	merged := append([]any(nil), have...)
	for _, e := range applied {
		i := element(merged, key+"="+str(e, key))
		if i < 0 {
			merged = append(merged, cloneAny(e))
			continue
		}
		inner, _ := merged[i].(map[string]any)
		if from, ok := e.(map[string]any); ok {
			mergeApply(inner, from)
		}
	}
	return merged
}
