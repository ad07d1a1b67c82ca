// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"slices"
	"strconv"
	"strings"
)

func (h *Host) list(r *request) (any, *failure) {
	var found []id
	for _, at := range h.sorted(r) {
		ok, fail := selected(r, h.store.objects[at])
		if fail != nil {
			return nil, fail
		}
		if ok {
			found = append(found, at)
		}
	}
	slices.SortFunc(found, func(a, b id) int {
		return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name)
	})
	meta := map[string]any{"resourceVersion": strconv.FormatInt(h.store.version, 10)}
	found = page(r, found, meta)
	items := make([]any, 0, len(found))
	for _, at := range found {
		items = append(items, h.store.objects[at])
	}
	return map[string]any{"apiVersion": r.ref.APIVersion, "kind": r.ref.Kind + "List", "metadata": meta, "items": items}, nil
}

// page returns the objects that limit and continue select, and writes the token
// of the next page into meta.
func page(r *request, found []id, meta map[string]any) []id {
	start, _ := strconv.Atoi(str(r.msg, "continue"))
	found = found[min(max(start, 0), len(found)):]
	limit, _ := r.msg["limit"].(int64)
	if limit <= 0 || int64(len(found)) <= limit {
		return found
	}
	meta["continue"] = strconv.Itoa(start + int(limit))
	meta["remainingItemCount"] = len(found) - int(limit)
	return found[:limit]
}

// selected evaluates the selectors of a list: label selectors, and field
// selectors on metadata.name and metadata.namespace.
func selected(r *request, obj map[string]any) (bool, *failure) {
	ok, fail := labelsMatch(str(r.msg, "labelSelector"), obj)
	if !ok || fail != nil {
		return false, fail
	}
	for _, term := range terms(str(r.msg, "fieldSelector")) {
		if !strings.HasPrefix(term, "metadata.name=") && !strings.HasPrefix(term, "metadata.namespace=") {
			return false, notServed("the field selector " + term)
		}
		if !matches(term, func(key string) (string, bool) { return str(obj, strings.Split(key, ".")...), true }) {
			return false, nil
		}
	}
	return true, nil
}

// labelsMatch evaluates a label selector: a, !a, a=b, a==b, a!=b, a in (b,c) and
// a notin (b,c), joined by commas.
func labelsMatch(selector string, obj map[string]any) (bool, *failure) {
	labels, _ := metadata(obj)["labels"].(map[string]any)
	label := func(key string) (string, bool) { v, ok := labels[key].(string); return v, ok }
	for _, term := range terms(selector) {
		var ok bool
		if before, set, isSet := strings.Cut(term, "("); isSet {
			words := strings.Fields(before)
			if len(words) != 2 || words[1] != "in" && words[1] != "notin" || !strings.HasSuffix(set, ")") {
				return false, badRequest("label selector: " + term + " is invalid")
			}
			have, there := label(words[0])
			in := there && slices.ContainsFunc(strings.Split(strings.TrimSuffix(set, ")"), ","), func(s string) bool {
				return strings.TrimSpace(s) == have
			})
			ok = in == (words[1] == "in")
		} else {
			ok = matches(term, label)
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// terms splits a selector at its commas, except for commas in parentheses.
func terms(selector string) []string {
	inside := false
	return strings.FieldsFunc(selector, func(c rune) bool {
		if c == '(' || c == ')' {
			inside = c == '('
		}
		return c == ',' && !inside
	})
}

func matches(term string, get func(key string) (string, bool)) bool {
	key, want, hasValue := strings.Cut(term, "=")
	if !hasValue {
		name := strings.TrimPrefix(strings.TrimSpace(term), "!")
		_, ok := get(name)
		return ok != strings.HasPrefix(strings.TrimSpace(term), "!")
	}
	unequal := strings.HasSuffix(key, "!")
	have, ok := get(strings.TrimSpace(strings.TrimSuffix(key, "!")))
	equal := ok && have == strings.TrimSpace(strings.TrimPrefix(want, "="))
	return equal != unequal
}
