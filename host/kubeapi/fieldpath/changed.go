package fieldpath

import (
	"maps"
	"slices"
)

// Changed returns the fields that are not the same in two states of an object. A
// null is as if it were not there. Of items of a list that are there in both
// states, a change of their order touches the list.
func Changed(before, after map[string]any) []Path {
	var c changes
	c.maps(nil, before, after)
	return c.paths
}

// changes collects where two values differ.
type changes struct{ paths []Path }

func (c *changes) maps(at Path, before, after map[string]any) {
	keys := maps.Clone(before)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		c.values(at.key(key), before[key], after[key])
	}
}

func (c *changes) values(at Path, before, after any) {
	if equal(before, after) {
		return
	}
	b, wasMap := before.(map[string]any)
	a, isMap := after.(map[string]any)
	if isMap && (wasMap || before == nil) && len(a) > 0 || wasMap && after == nil && len(b) > 0 {
		c.maps(at, b, a)
		return
	}
	bl, wasList := before.([]any)
	al, isList := after.([]any)
	if (wasList || before == nil) && (isList || after == nil) && c.lists(at, bl, al) {
		return
	}
	c.paths = append(c.paths, at)
}

// lists compares two lists of items; false says that they are none, or that
// their order has changed.
func (c *changes) lists(at Path, before, after []any) bool {
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
		c.items(at, b, a)
		return true
	}
	return false
}

// shared returns the ids that another list has too.
func (l *itemList) shared(other itemList) []string {
	return slices.DeleteFunc(slices.Clone(l.ids), func(id string) bool { _, ok := other.place[id]; return !ok })
}

// items compares the items of two lists: one that has gone is touched as a
// whole, one that has come in each of its fields.
func (c *changes) items(at Path, before, after itemList) {
	for i, id := range before.ids {
		if j, ok := after.place[id]; ok {
			c.maps(at.item(before.list[i]), before.list[i], after.list[j])
		} else {
			c.paths = append(c.paths, at.item(before.list[i]))
		}
	}
	for j, id := range after.ids {
		if _, ok := before.place[id]; !ok {
			c.maps(at.item(after.list[j]), nil, after.list[j])
		}
	}
}

// equal compares two values as JSON has them: 1 and 1.0 are the same.
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
		return false // which == cannot compare
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
