// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"slices"
)

// Changed yields the fields that differ between two states of an object. A null counts as absent. A
// change in the order of the items that both states of a list have touches the list.
func Changed(before, after map[string]any) Fields {
	return func(yield func(Path) bool) {
		c := changes{walk{yield: yield}}
		c.maps(before, after)
	}
}

// changes finds the differences between two values. Each value is compared once: nested values are
// not compared as a whole first.
type changes struct{ walk }

func (c *changes) maps(before, after map[string]any) {
	for _, key := range unionKeys(before, after) {
		c.push(step{key: key})
		c.values(before[key], after[key])
		c.pop()
		if c.over {
			return
		}
	}
}

// unionKeys returns the keys of two maps, sorted.
func unionKeys(a, b map[string]any) []string {
	keys := make([]string, 0, max(len(a), len(b)))
	for key := range a {
		keys = append(keys, key)
	}
	for key := range b {
		if _, there := a[key]; !there {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (c *changes) values(before, after any) {
	b, wasMap := before.(map[string]any)
	a, isMap := after.(map[string]any)
	if isMap && (wasMap || before == nil) && len(a) > 0 || wasMap && after == nil && len(b) > 0 {
		c.maps(b, a)
		return
	}
	bl, wasList := before.([]any)
	al, isList := after.([]any)
	if (wasList || before == nil) && (isList || after == nil) && c.lists(bl, al) {
		return
	}
	if !equal(before, after) {
		c.leaf()
	}
}

// lists compares two lists of items. It returns false if they are not such lists, or if their order
// has changed.
func (c *changes) lists(before, after []any) bool {
	if len(before)+len(after) == 0 {
		return false
	}
	for _, key := range itemKeys {
		b, wasItems := itemsBy(before, key)
		a, isItems := itemsBy(after, key)
		if !wasItems && len(before) > 0 || !isItems && len(after) > 0 {
			continue
		}
		if !slices.Equal(b.shared(a), a.shared(b)) {
			return false
		}
		c.items(b, a)
		return true
	}
	return false
}

// shared returns the IDs that another list has too.
func (l *itemList) shared(other itemList) []string {
	return slices.DeleteFunc(slices.Clone(l.ids), func(id string) bool { _, ok := other.place[id]; return !ok })
}

// items compares the items of two lists. A removed item is touched as a whole, and an added one in
// each of its fields.
func (c *changes) items(before, after itemList) {
	for i, id := range before.ids {
		c.push(step{item: before.list[i]})
		if j, ok := after.place[id]; ok {
			c.maps(before.list[i], after.list[j])
		} else {
			c.leaf()
		}
		c.pop()
		if c.over {
			return
		}
	}
	for j, id := range after.ids {
		if _, ok := before.place[id]; ok {
			continue
		}
		c.push(step{item: after.list[j]})
		c.maps(nil, after.list[j])
		c.pop()
		if c.over {
			return
		}
	}
}

// equal compares two values with the semantics of JSON: 1 and 1.0 are equal.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalMaps(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case int64:
		if f, ok := b.(float64); ok {
			return float64(a) == f
		}
	case float64:
		if i, ok := b.(int64); ok {
			return a == float64(i)
		}
	}
	switch b.(type) {
	case map[string]any, []any:
		return false // == cannot compare them
	}
	return a == b
}

func equalMaps(a, b map[string]any) bool {
	for key, value := range a {
		if !equal(value, b[key]) {
			return false
		}
	}
	for key, value := range b {
		if _, ok := a[key]; !ok && value != nil {
			return false
		}
	}
	return true
}
