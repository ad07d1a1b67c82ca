// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"maps"
	"slices"
)

// itemKeys are the keys that identify items of lists in Kubernetes' own kinds, the most common ones
// first. A list is treated as one of items if each element has a value under the same one of these
// keys, and no two values are equal. Otherwise it counts as one value.
var itemKeys = []string{"name", "type", "key", "containerPort", "port", "mountPath", "devicePath", "ip", "uid", "topologyKey"}

// Touched yields the fields that a value sets: its scalars, its empty maps, and lists that count as
// one value.
func Touched(value map[string]any) Fields {
	return func(yield func(Path) bool) {
		l := leaves{walk: walk{yield: yield}}
		l.fields(value)
	}
}

// Merged is Touched for a merge patch (RFC 7386): a list replaces the previous value, so it counts
// as one value.
func Merged(patch map[string]any) Fields {
	return func(yield func(Path) bool) {
		l := leaves{walk: walk{yield: yield}, whole: true}
		l.fields(patch)
	}
}

// leaves finds the leaves of a value.
type leaves struct {
	walk
	whole bool // lists count as one value
}

func (l *leaves) value(v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			l.fields(v)
			return
		}
	case []any:
		if l.whole {
			break
		}
		if items, ok := items(v); ok {
			for i := 0; i < len(items.list) && !l.over; i++ {
				l.push(step{item: items.list[i]})
				l.fields(items.list[i])
				l.pop()
			}
			return
		}
	}
	l.leaf()
}

func (l *leaves) fields(m map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		l.push(step{key: key})
		l.value(m[key])
		l.pop()
		if l.over {
			return
		}
	}
}

// itemList is a list of items that are identified by a key.
type itemList struct {
	list  []map[string]any
	ids   []string
	place map[string]int // the position of each ID
}

// items reads a list of items. ok is false if the list has other elements, or is empty.
func items(list []any) (l itemList, ok bool) {
	for _, key := range itemKeys {
		if l, ok = itemsBy(list, key); ok {
			return l, true
		}
	}
	return itemList{}, false
}

func itemsBy(list []any, key string) (itemList, bool) {
	var l itemList
	for i, v := range list {
		item, _ := v.(map[string]any)
		id, ok := text(item[key])
		if _, twice := l.place[id]; !ok || twice {
			return l, false
		}
		if i == 0 {
			l = itemList{make([]map[string]any, 0, len(list)), make([]string, 0, len(list)), make(map[string]int, len(list))}
		}
		l.place[id] = i
		l.list, l.ids = append(l.list, item), append(l.ids, id)
	}
	return l, len(list) > 0
}
