// SPDX-License-Identifier: Apache-2.0

// Package stranded finds objects that have the finalizer of a controller but are outside of the set that it watches. No run finalizes them,
// so their deletion waits without end. It also takes the finalizer off.
//
// A Table decides which objects are looked at, and remembers those that are stranded. It is a pure data structure with a bound on its
// memory. A Finder sends the requests.
package stranded

import (
	"cmp"
	"maps"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
)

// Bounds of a Table.
const (
	// MaxObjects is the maximum number of objects that are remembered; further ones are counted.
	MaxObjects = 1000
	// MaxGets is the maximum number of objects in a Task. If more must be looked at, all objects are listed.
	MaxGets = 50
)

// Object is an object with the finalizer.
type Object struct {
	Key abi.Key
	UID string
	// Deleting reports whether its deletion was requested, and waits.
	Deleting bool
	// Finalizers are those of the object, in order.
	Finalizers []string
}

// View is a copy of the state of a Table.
type View struct {
	// Objects are the stranded objects, those that are being deleted first, and then by key. Total also counts the ones that are not
	// remembered.
	Objects []Object
	Total   int
	// Unknown is the reason why objects may be missing; empty if none is.
	Unknown string
}

// Table remembers which objects are stranded. The zero value knows nothing: its first Task lists all objects. One loop owns it.
type Table struct {
	listed  bool // no list is needed
	objects map[abi.Key]Object
	more    int               // stranded objects of the last list that are not in objects
	left    map[abi.Key]bool  // objects that must be looked at; nil if all are listed
	unknown string            // see View.Unknown
	checked map[abi.Key]uint8 // rounds in which a known object was not looked at
}

// Left records that the watch no longer has an object, which had the finalizer in its last state.
func (t *Table) Left(key abi.Key) {
	switch {
	case !t.listed:
	case len(t.left) >= MaxGets:
		t.Missed()
	default:
		if t.left == nil {
			t.left = map[abi.Key]bool{}
		}
		t.left[key] = true
	}
}

// Missed records that objects may have left the watch without a call of Left: all objects must be listed.
func (t *Table) Missed() { t.listed, t.left = false, nil }

// Recheck makes the next Task look at known objects: those that have waited for the longest time first.
func (t *Table) Recheck() {
	if t.more > 0 {
		t.Missed()
		return
	}
	keys := slices.SortedFunc(maps.Keys(t.objects), func(a, b abi.Key) int { return cmp.Compare(t.checked[b], t.checked[a]) })
	for i, key := range keys {
		if i < MaxGets-len(t.left) {
			t.Left(key)
		} else if t.checked[key] < 255 {
			t.checked[key]++
		}
	}
}

// Task returns the objects that must be looked at, or that all objects must be listed. The caller reports each result with Found, Gone or
// Listed. Objects without a result are in the next Task again.
func (t *Table) Task() (gets []abi.Key, list bool) {
	return slices.Collect(maps.Keys(t.left)), !t.listed
}

// Found records that an object is stranded, and reports whether that is new.
func (t *Table) Found(o *Object) bool {
	delete(t.left, o.Key)
	_, known := t.objects[o.Key]
	if !known && len(t.objects) >= MaxObjects {
		t.more++
		return false
	}
	if t.objects == nil {
		t.objects, t.checked = map[abi.Key]Object{}, map[abi.Key]uint8{}
	}
	t.objects[o.Key], t.checked[o.Key] = *o, 0
	return !known
}

// Gone records that an object is not stranded: it is gone, has no finalizer, or is watched.
func (t *Table) Gone(key abi.Key) {
	delete(t.left, key)
	delete(t.objects, key)
	delete(t.checked, key)
}

// Listed replaces all objects by the result of a list, and returns those that are new. unknown is the reason why objects may be missing.
func (t *Table) Listed(objects []Object, unknown string) (fresh []Object) {
	old := t.objects
	*t = Table{listed: true, unknown: unknown}
	for i := range objects {
		if t.Found(&objects[i]) && old[objects[i].Key].UID != objects[i].UID {
			fresh = append(fresh, objects[i])
		}
	}
	return fresh
}

// View returns the current state.
func (t *Table) View() *View {
	v := &View{Objects: slices.Collect(maps.Values(t.objects)), Total: len(t.objects) + t.more, Unknown: t.unknown}
	slices.SortFunc(v.Objects, func(a, b Object) int {
		if a.Deleting != b.Deleting {
			return map[bool]int{true: -1, false: 1}[a.Deleting]
		}
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return v
}
