package fieldpath

import (
	"maps"
	"slices"
)

// itemKeys are what items of lists are known by in Kubernetes' own kinds, the
// usual ones first. A list is treated as one of items if each has a value under
// one of these keys, and no two the same; else it is one value.
var itemKeys = []string{"name", "type", "key", "containerPort", "port", "mountPath", "devicePath", "ip", "uid", "topologyKey"}

// Touched returns the fields that a value sets: its scalars, empty maps, and
// lists that are one value.
func Touched(value map[string]any) []Path {
	var w walker
	w.fields(nil, value)
	return w.paths
}

// Merged is Touched for a merge patch (RFC 7386): a list replaces what is there,
// and so is one value.
func Merged(patch map[string]any) []Path {
	w := walker{whole: true}
	w.fields(nil, patch)
	return w.paths
}

// walker collects the leaves of a value.
type walker struct {
	whole bool // lists are one value
	paths []Path
}

func (w *walker) value(at Path, v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			w.fields(at, v)
			return
		}
	case []any:
		if items, ok := items(v); ok && !w.whole {
			for _, item := range items.list {
				w.fields(at.item(item), item)
			}
			return
		}
	}
	w.paths = append(w.paths, at)
}

func (w *walker) fields(at Path, m map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		w.value(at.key(key), m[key])
	}
}

// itemList is a list of items that are known by a key.
type itemList struct {
	list  []map[string]any
	ids   []string
	place map[string]int // of each id
}

// items reads a list as one of items; ok is false if it is none, or empty.
func items(list []any) (l itemList, ok bool) {
	for _, key := range itemKeys {
		if l, ok = itemsBy(list, key); ok {
			return l, true
		}
	}
	return itemList{}, false
}

func itemsBy(list []any, key string) (itemList, bool) {
	l := itemList{place: make(map[string]int, len(list))}
	for i, v := range list {
		item, _ := v.(map[string]any)
		id, ok := text(item[key])
		if _, twice := l.place[id]; !ok || twice {
			return l, false
		}
		l.place[id] = i
		l.list, l.ids = append(l.list, item), append(l.ids, id)
	}
	return l, len(list) > 0
}
