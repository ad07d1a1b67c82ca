// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// This is the model that TestRights_WhatChangesLiesWithinThem compares with. It
// knows nothing of fieldpath and Policy: it takes out of two states of an object
// what rules allow to change, and compares the rest.

// modelKind is a kind of the model test.
type modelKind struct {
	gvk        schema.GroupVersionKind
	resource   string
	cluster    bool
	versions   []string // that writes use
	subs       []string
	leaves     []leaf
	patterns   []string
	scaledPath string // of the replicas, in the object
}

// leaf is a field with some of its values.
type leaf struct {
	path   string
	values []any
}

func (k *modelKind) gvr() schema.GroupVersionResource {
	return k.gvk.GroupVersion().WithResource(k.resource)
}

func (k *modelKind) apiVersion() string { return k.gvk.GroupVersion().String() }

// rightsOf are rules, and optionally those of a grant: an operation must lie within both.
type rightsOf [][]abi.Capability

// allowing returns the rules that allow a verb on an object, by their fields.
func allowing(rules []abi.Capability, k *modelKind, verb, sub, ns, name string) (fields [][]string) {
	for _, r := range rules {
		has := func(list []string, v string) bool { return len(list) == 0 || v != "" && slices.Contains(list, v) }
		inSub := sub == "" && len(r.Subresources) == 0 || sub != "" && slices.Contains(r.Subresources, sub)
		if r.Group == k.gvk.Group && r.Resource == k.resource && inSub && (slices.Contains(r.Verbs, verb) || slices.Contains(r.Verbs, "*")) &&
			has(r.Namespaces, ns) && has(r.Names, name) {
			fields = append(fields, r.Fields)
		}
	}
	return fields
}

func (rs rightsOf) allow(k *modelKind, verb, sub, ns, name string) bool {
	for _, rules := range rs {
		if len(allowing(rules, k, verb, sub, ns, name)) == 0 {
			return false
		}
	}
	return true
}

// beyond returns what of a change rules do not allow, "" for nothing.
func (rs rightsOf) beyond(k *modelKind, verb, sub, ns, name string, before, after map[string]any) string {
	for _, rules := range rs {
		lists := allowing(rules, k, verb, sub, ns, name)
		if len(lists) == 0 {
			return verb + " is not allowed"
		}
		var patterns []string
		limited := true
		for _, l := range lists {
			limited = limited && len(l) > 0
			patterns = append(patterns, l...)
		}
		if sub == "scale" {
			if !limited || slices.Contains(patterns, "spec") || slices.Contains(patterns, "spec.replicas") {
				patterns = []string{k.scaledPath}
			} else {
				patterns = nil
			}
		} else if !limited {
			continue
		}
		if at(before, "metadata", "ownerReferences") != nil || at(after, "metadata", "ownerReferences") != nil {
			// The garbage collector may have it already.
			patterns = append(patterns, "metadata.finalizers", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds")
		}
		b, a := masked(before, patterns), masked(after, patterns)
		if fmt.Sprint(b) != fmt.Sprint(a) {
			return fmt.Sprintf("beyond %v:\nbefore %v\nafter  %v", patterns, b, a)
		}
		if lost := lostOwners(before, after, patterns); limited && lost != "" {
			return lost
		}
	}
	return ""
}

// masked returns a copy of an object without the fields that patterns allow to change, the API
// server's bookkeeping, and empty values.
func masked(o map[string]any, patterns []string) any {
	c, _ := copied(o).(map[string]any)
	if meta, ok := c["metadata"].(map[string]any); ok {
		for _, key := range []string{"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp", "name", "namespace"} {
			delete(meta, key)
		}
	}
	delete(c, "apiVersion")
	delete(c, "kind")
	for _, p := range patterns {
		mask(c, steps(p))
	}
	return bared(c)
}

func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for key, value := range v {
			m[key] = copied(value)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i := range v {
			l[i] = copied(v[i])
		}
		return l
	}
	return v
}

// steps splits a pattern of this test: names, and [key=value].
func steps(pattern string) []string {
	return strings.Split(strings.ReplaceAll(strings.ReplaceAll(pattern, "[", ".["), "]", ""), ".")
}

func mask(v any, path []string) {
	item, isItem := strings.CutPrefix(path[0], "[")
	if !isItem {
		m, _ := v.(map[string]any)
		if len(path) == 1 {
			delete(m, path[0])
		} else if next, ok := m[path[0]]; ok {
			mask(next, path[1:])
			if l, ok := next.([]any); ok {
				m[path[0]] = slices.DeleteFunc(l, func(i any) bool { return len(i.(map[string]any)) == 0 })
			}
		}
		return
	}
	key, want, _ := strings.Cut(item, "=")
	l, _ := v.([]any)
	for _, i := range l {
		if m, _ := i.(map[string]any); m[key] == want {
			if len(path) == 1 {
				clear(m)
				continue
			}
			mask(m, path[1:])
			if len(m) == 1 {
				clear(m) // what it is known by
			}
		}
	}
}

func bared(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if v[key] = bared(value); v[key] == nil {
				delete(v, key)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
	}
	return v
}

const modelManager = "wasmctl/tester"

// lostOwners returns the managers, other than the module's own, that have lost or gained a field
// that patterns do not cover.
func lostOwners(before, after map[string]any, patterns []string) string {
	if before == nil || after == nil {
		return ""
	}
	b, a := ownership(before), ownership(after)
	for who, fields := range a {
		for f := range fields {
			if within(f, b[who]) {
				continue // of a map whose last key has gone, it is left that it is there
			}
			if !strings.HasPrefix(who, modelManager) && len(b) > 0 {
				return fmt.Sprintf("%s now owns %s", who, f)
			}
			// A map that is one value to the API server changes hands as a whole.
			if strings.HasPrefix(who, modelManager) && !named(f, patterns) && (strings.Contains(who, "Apply") || !above(f, patterns)) {
				return fmt.Sprintf("the module now owns %s", f)
			}
		}
	}
	for who, fields := range b {
		for f := range fields {
			if !a[who][f] && !strings.HasPrefix(who, modelManager+" ") && !named(f, patterns) && !above(f, patterns) {
				return fmt.Sprintf("%s no longer owns %s", who, f)
			}
		}
	}
	return ""
}

// within reports whether a field is one of a list, or contains one.
func within(field string, fields map[string]bool) bool {
	for f := range fields {
		if f == field || strings.HasPrefix(f, field+".") || strings.HasPrefix(f, field+"[") {
			return true
		}
	}
	return false
}

// above reports whether a pattern leads into a field.
func above(field string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return strings.HasPrefix(p, field+".") })
}

// ownership are the fields of each manager, as dotted paths.
func ownership(o map[string]any) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	list, _ := at(o, "metadata", "managedFields").([]any)
	for _, e := range list {
		who := fmt.Sprint(at(e, "manager"), " ", at(e, "operation"), " ", at(e, "subresource"), " ", at(e, "apiVersion"))
		all[who] = map[string]bool{}
		var walk func(prefix string, v any)
		walk = func(prefix string, v any) {
			m, _ := v.(map[string]any)
			leaf := true
			for key, below := range m {
				if name, ok := strings.CutPrefix(key, "f:"); ok {
					leaf = false
					walk(strings.TrimPrefix(prefix+"."+name, "."), below)
				} else if strings.HasPrefix(key, "k:") {
					leaf = false
					walk(prefix+"[]", below)
				} else if key == "." {
					leaf = false // that it is there
				}
			}
			if leaf && prefix != "" {
				all[who][prefix] = true
			}
		}
		walk("", at(e, "fieldsV1"))
	}
	return all
}

// named reports whether a pattern covers a field as ownership has it.
func named(field string, patterns []string) bool {
	for _, p := range patterns {
		if before, _, ok := strings.Cut(p, "["); ok {
			if strings.HasPrefix(field, before+"[]") {
				return true // which item is compared by value
			}
			continue
		}
		if field == p || strings.HasPrefix(field, p+".") || strings.HasPrefix(field, p+"[") {
			return true
		}
	}
	return false
}

// TestModel_Notices checks that the model test finds violations.
func TestModel_Notices(t *testing.T) {
	k := &modelKind{gvk: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, resource: "configmaps"}
	rule := abi.Capability{Resource: "configmaps", Verbs: []string{"patch"}, Fields: []string{"data.a", "spec.c[name=app].image"}}
	object := func(a, b, image, side string) map[string]any {
		return map[string]any{"data": map[string]any{"a": a, "b": b}, "spec": map[string]any{"c": []any{
			map[string]any{"name": "app", "image": image}, map[string]any{"name": "side", "image": side},
		}}}
	}
	was := object("1", "1", "1", "1")
	for want, after := range map[bool][]map[string]any{
		true:  {object("1", "2", "1", "1"), object("1", "1", "1", "2"), {"data": map[string]any{"a": "1"}}},
		false: {object("2", "1", "1", "1"), object("1", "1", "2", "1")},
	} {
		for _, o := range after {
			if got := (rightsOf{{rule}}).beyond(k, "patch", "", "n", "x", was, o); (got != "") != want {
				t.Errorf("%v: %q", o, got)
			}
		}
	}
	if (rightsOf{{rule}}).beyond(k, "update", "", "n", "x", was, was) == "" || (rightsOf{{rule}, {}}).allow(k, "patch", "", "n", "x") {
		t.Error("a verb that is not allowed")
	}
}
