// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// watches returns the watches of the kind: For, Owns and Watches.
func (h *Host) watches(group, kind string) []wasmctl.Watch {
	all := slices.Concat(h.manifest.Owns, h.manifest.Watches)
	if h.manifest.For != nil {
		all = append(all, *h.manifest.For)
	}
	return slices.DeleteFunc(all, func(w wasmctl.Watch) bool { return w.Group != group || w.Kind != kind })
}

// covers reports whether a watch selects the object.
func covers(w *wasmctl.Watch, obj map[string]any) bool {
	if len(w.Namespaces) > 0 && !slices.Contains(w.Namespaces, str(obj, "metadata", "namespace")) {
		return false
	}
	ok, _ := labelsMatch(w.LabelSelector, obj)
	return ok
}

// cached returns the object in its form in the cache, if a watch covers it.
func cached(watches []wasmctl.Watch, obj map[string]any) (map[string]any, bool) {
	found, metadataOnly := false, true
	for i := range watches {
		if covers(&watches[i], obj) {
			found = true
			metadataOnly = metadataOnly && watches[i].MetadataOnly
		}
	}
	if !found || !metadataOnly {
		return obj, found
	}
	return map[string]any{"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": obj["metadata"]}, true
}

// inCache returns the watches of the kind, or the reason why the cache cannot
// answer.
func (h *Host) inCache(r *request) ([]wasmctl.Watch, *failure) {
	watches := h.watches(r.id.group, r.id.kind)
	switch {
	case len(watches) == 0:
		return nil, badRequest(r.ref.Kind + " is not watched: add {Group: \"" + r.id.group + "\", Kind: \"" + r.ref.Kind + "\"} to Manifest.Watches")
	case h.notSynced[r.ref.Kind]:
		return nil, apiFailure(wasmctl.StatusNotSynced, "NotSynced", "the watch of "+r.ref.Kind+" has not listed its objects yet")
	}
	return watches, nil
}

func (h *Host) cacheGet(r *request) (any, *failure) {
	watches, fail := h.inCache(r)
	if fail != nil {
		return nil, fail
	}
	if r.old != nil {
		if obj, ok := cached(watches, r.old); ok {
			return obj, nil
		}
	}
	return nil, h.notFound(r)
}

func (h *Host) cacheList(r *request) (any, *failure) {
	watches, fail := h.inCache(r)
	if fail != nil {
		return nil, fail
	}
	after, fail := readContinue(str(r.msg, "continue"))
	if fail != nil {
		return nil, fail
	}
	limit, _ := r.msg["limit"].(int64)
	if limit <= 0 {
		limit = 500
	}
	h.indexes.learn(r)
	meta := map[string]any{}
	items := []any{}
	last := id{}
	for _, at := range h.sorted(r) {
		if compareIDs(at, after) <= 0 {
			continue
		}
		obj, ok := cached(watches, h.store.objects[at])
		if ok {
			ok, fail = labelsMatch(str(r.msg, "labelSelector"), obj)
			ok = ok && !h.indexes.leavesOut(r, at, obj) && ownedBy(str(r.msg, "owner"), obj) && fieldsMatch(str(r.msg, "fieldSelector"), obj)
		}
		switch {
		case fail != nil:
			return nil, fail
		case !ok:
			continue
		}
		if int64(len(items)) == limit {
			meta["continue"] = base64.RawURLEncoding.EncodeToString([]byte(last.namespace + "/" + last.name))
			break
		}
		items, last = append(items, obj), at
	}
	return map[string]any{"apiVersion": r.ref.APIVersion, "kind": r.ref.Kind + "List", "metadata": meta, "items": items}, nil
}

// ownedBy reports whether an object has an owner with this UID. An empty UID
// matches every object.
func ownedBy(uid string, obj map[string]any) bool {
	owners, _ := metadata(obj)["ownerReferences"].([]any)
	return uid == "" || slices.ContainsFunc(owners, func(o any) bool { return str(o, "uid") == uid })
}

// fieldsMatch evaluates a field selector. Its paths may lead to any string,
// number or bool.
func fieldsMatch(selector string, obj map[string]any) bool {
	return !slices.ContainsFunc(terms(selector), func(term string) bool {
		return !matches(term, func(key string) (string, bool) { return scalar(obj, strings.Split(key, ".")...), true })
	})
}

// scalar is like str, but also accepts numbers and bools.
func scalar(v any, path ...string) string {
	for _, k := range path {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	switch v := v.(type) {
	case string, bool, int64, float64:
		return fmt.Sprint(v)
	default:
		return ""
	}
}

// sorted returns the objects of the kind in the namespace, ordered by namespace
// and name.
func (h *Host) sorted(r *request) []id {
	var found []id
	for at := range h.store.objects {
		if at.group == r.id.group && at.kind == r.id.kind && (r.id.namespace == "" || at.namespace == r.id.namespace) {
			found = append(found, at)
		}
	}
	slices.SortFunc(found, compareIDs)
	return found
}

func compareIDs(a, b id) int {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
}

// readContinue returns the last object of the previous page. The next page
// starts after it, even if objects were added or removed.
func readContinue(token string) (after id, fail *failure) {
	if token == "" {
		return id{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	namespace, name, ok := strings.Cut(string(b), "/")
	if err != nil || !ok {
		return id{}, badRequest("continue is not a token of cache_list")
	}
	return id{namespace: namespace, name: name}, nil
}
