// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// StrategicMergeFrom returns a strategic merge patch with the changes since
// obj: lists of built-in kinds are merged by their keys. Custom resources do
// not support it.
func StrategicMergeFrom(obj Object, opts ...MergeFromOption) Patch {
	s := &strategicFrom{mergeFrom{from: obj}}
	for _, opt := range opts {
		opt.ApplyToMergeFrom(&s.opts)
	}
	return s
}

type strategicFrom struct{ mergeFrom }

// Type implements Patch.
func (*strategicFrom) Type() types.PatchType { return types.StrategicMergePatchType }

// Data implements Patch.
func (s *strategicFrom) Data(obj Object) ([]byte, error) { return text(s, obj) }

func (s *strategicFrom) diff(obj Object) (any, error) {
	from, to, err := s.states(obj)
	if err != nil {
		return nil, err
	}
	var was, now map[string]any
	if err := errors.Join(from.Decode(&was), to.Decode(&now)); err != nil {
		return nil, fmt.Errorf("patch %T: %w", obj, err)
	}
	diff, err := strategicDiff(was, now, reflect.TypeOf(obj))
	if err != nil {
		return nil, fmt.Errorf("patch %T: %w", obj, err)
	}
	return diff, nil
}

// strategicDiff returns the strategic merge patch that turns from into to. The
// tags of the Go type determine which lists are merged. The package
// strategicpatch of apimachinery does the same, but would add the code for
// OpenAPI documents to each module.
func strategicDiff(from, to map[string]any, t reflect.Type) (map[string]any, error) {
	diff := map[string]any{}
	for key := range from {
		if _, ok := to[key]; !ok {
			diff[key] = nil
		}
	}
	for key, now := range to {
		was, ok := from[key]
		switch {
		case !ok:
			diff[key] = now
		case !reflect.DeepEqual(was, now):
			if err := fieldOf(t, key).diff(diff, key, was, now); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return diff, nil
}

// patchField is a field with its tags for patches.
type patchField struct {
	typ                        reflect.Type
	merge, replace, retainKeys bool
	mergeKey                   string
}

// fieldOf returns the field of a JSON key. The values of a map have no tags.
func fieldOf(t reflect.Type, key string) patchField {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == nil:
	case t.Kind() == reflect.Map:
		return patchField{typ: t.Elem()}
	case t.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != key {
				continue
			}
			p := patchField{typ: f.Type, mergeKey: f.Tag.Get("patchMergeKey")}
			for s := range strings.SplitSeq(f.Tag.Get("patchStrategy"), ",") {
				p.merge, p.replace, p.retainKeys = p.merge || s == "merge", p.replace || s == "replace", p.retainKeys || s == "retainKeys"
			}
			return p
		}
	}
	return patchField{}
}

// diff adds the difference of two values to patch.
func (f patchField) diff(patch map[string]any, key string, was, now any) error {
	wasMap, ok1 := was.(map[string]any)
	nowMap, ok2 := now.(map[string]any)
	if ok1 && ok2 && !f.replace {
		inner, err := strategicDiff(wasMap, nowMap, f.typ)
		if err != nil {
			return err
		}
		if f.retainKeys {
			inner["$retainKeys"] = keysOf(nowMap)
		}
		patch[key] = inner
		return nil
	}
	wasList, ok1 := was.([]any)
	nowList, ok2 := now.([]any)
	if !ok1 || !ok2 || !f.merge {
		patch[key] = now
		if nowMap != nil && f.replace {
			patch[key] = replaced(nowMap)
		}
		return nil
	}
	if f.mergeKey == "" {
		f.diffValues(patch, key, wasList, nowList)
		return nil
	}
	return f.diffItems(patch, key, wasList, nowList)
}

// replaced marks a map that replaces another one.
func replaced(m map[string]any) map[string]any {
	out := map[string]any{"$patch": "replace"}
	maps.Copy(out, m)
	return out
}

func keysOf(m map[string]any) []any {
	keys := make([]any, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		keys = append(keys, key)
	}
	return keys
}
