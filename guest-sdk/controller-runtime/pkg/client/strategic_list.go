// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"reflect"
	"slices"
)

// diffValues adds the difference of two lists of scalars that are merged.
func (patchField) diffValues(patch map[string]any, key string, was, now []any) {
	missing := func(from, in []any) (list []any) {
		for _, v := range from {
			if !slices.ContainsFunc(in, func(o any) bool { return reflect.DeepEqual(o, v) }) {
				list = append(list, v)
			}
		}
		return list
	}
	if added := missing(now, was); added != nil {
		patch[key] = added
	}
	if gone := missing(was, now); gone != nil {
		patch["$deleteFromPrimitiveList/"+key] = gone
	}
	patch["$setElementOrder/"+key] = now
}

// diffItems adds the difference of two lists of maps that are merged by a key.
func (f patchField) diffItems(patch map[string]any, key string, was, now []any) error {
	before, _, err := f.index(was)
	if err != nil {
		return err
	}
	after, order, err := f.index(now)
	if err != nil {
		return err
	}
	elem := f.typ
	for elem.Kind() == reflect.Pointer || elem.Kind() == reflect.Slice {
		elem = elem.Elem()
	}
	items, places := []any{}, []any{}
	for _, name := range order {
		places = append(places, map[string]any{f.mergeKey: name})
		old, ok := before[name]
		if !ok {
			items = append(items, after[name])
			continue
		}
		d, err := strategicDiff(old, after[name], elem)
		if err != nil {
			return err
		}
		if len(d) > 0 {
			d[f.mergeKey] = name
			items = append(items, d)
		}
	}
	for _, v := range was { // in the old order
		if name := v.(map[string]any)[f.mergeKey]; after[name] == nil { //nolint:forcetypeassert // checked by index
			items = append(items, map[string]any{"$patch": "delete", f.mergeKey: name})
		}
	}
	if len(items) > 0 {
		patch[key] = items
	}
	patch["$setElementOrder/"+key] = places
	return nil
}

// index returns the items by key, and the keys in their order.
func (f patchField) index(list []any) (items map[any]map[string]any, order []any, err error) {
	items = map[any]map[string]any{}
	for _, v := range list {
		m, ok := v.(map[string]any)
		if !ok || m[f.mergeKey] == nil {
			return nil, nil, fmt.Errorf("an item of the list has no %q, by which the items are merged", f.mergeKey)
		}
		if items[m[f.mergeKey]] == nil {
			order = append(order, m[f.mergeKey])
		}
		items[m[f.mergeKey]] = m
	}
	return items, order, nil
}
