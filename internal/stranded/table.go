// SPDX-License-Identifier: Apache-2.0

// Package stranded finds objects that have the finalizer of a controller but are outside of the set that it watches. No run finalizes them,
// so their deletion waits without end, unless another controller has the same finalizer. It also takes the finalizer off.
//
// A Table decides which objects are looked at, and remembers those that are outside. It is a pure data structure with a bound on its
// memory. A Finder sends the requests.
package stranded

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Bounds of a Table.
const (
	// MaxObjects is the maximum number of objects that are remembered, and of those that must be looked at. If there are more of these, all
	// objects are listed.
	MaxObjects = 1000
	// MaxGets is the maximum number of objects in a Task.
	MaxGets = 50
)

// WaitsAfter is the time after which the deletion of an object counts as waiting without end, if the object has not left the watch of this
// controller: another controller may have the same finalizer, and be finalizing the object.
const WaitsAfter = 5 * time.Minute

// Object is an object with the finalizer that is outside of the watched set.
type Object struct {
	Key abi.Key
	UID string
	// Deleted is when its deletion was requested; zero if it was not.
	Deleted time.Time
	// Finalizers are those of the object, in order.
	Finalizers []string
	// Left reports whether the object was in the watched set before.
	Left bool
}

// Stranded reports whether this controller is probably the one that must finalize the object.
func (o *Object) Stranded(now time.Time) bool {
	return o.Left || !o.Deleted.IsZero() && now.Sub(o.Deleted) > WaitsAfter
}

// View is a copy of the state of a Table.
type View struct {
	// Objects are the objects outside of the watched set, those that are being deleted first, and then by key. There are at most
	// MaxObjects.
	Objects []Object
	// Unknown is the reason why objects may be missing; empty if none is.
	Unknown string
}

// Stranded returns the objects that this controller must probably finalize.
func (v *View) Stranded(now time.Time) (list []Object) {
	for i := range v.Objects {
		if v.Objects[i].Stranded(now) {
			list = append(list, v.Objects[i])
		}
	}
	return list
}

// Table remembers which objects are outside of the watched set. The zero value knows nothing: its first Task lists all objects. One loop
// owns it.
type Table struct {
	listed  bool // no list is needed
	objects map[abi.Key]Object
	more    bool              // the last list had objects that are not in objects
	left    map[abi.Key]bool  // objects that must be looked at, and whether they have left the watch
	unknown string            // see View.Unknown
	waited  map[abi.Key]uint8 // rounds in which a known object was not looked at
}

// Left records that the watch no longer has an object, which had the finalizer in its last state.
func (t *Table) Left(key abi.Key) { t.look(key, true) }

func (t *Table) look(key abi.Key, left bool) {
	if t.left == nil {
		t.left = map[abi.Key]bool{}
	}
	switch _, known := t.left[key]; {
	case known || len(t.left) < MaxObjects:
		t.left[key] = t.left[key] || left
	default:
		t.Missed()
	}
}

// Missed records that objects may have left the watch without a call of Left: all objects must be listed.
func (t *Table) Missed() { t.listed = false }

// Recheck makes the next Task look at known objects: those that have waited for the longest time first.
func (t *Table) Recheck() {
	if t.more {
		t.Missed()
		return
	}
	keys := slices.SortedFunc(maps.Keys(t.objects), func(a, b abi.Key) int { return cmp.Compare(t.waited[b], t.waited[a]) })
	for _, key := range keys {
		if len(t.left) < MaxGets {
			t.look(key, false)
		} else if t.waited[key] < 255 {
			t.waited[key]++
		}
	}
}

// Task returns objects that must be looked at, and whether all objects must be listed, which makes the looks unnecessary. The caller
// reports each result with Found, Gone or Listed. Objects without a result are in a later Task again.
func (t *Table) Task() (gets []abi.Key, list bool) {
	for key := range t.left {
		if len(gets) == MaxGets {
			break
		}
		gets = append(gets, key)
	}
	return gets, !t.listed
}

// Needed reports whether Task returns anything.
func (t *Table) Needed() bool { return len(t.left) > 0 || !t.listed }

// Found records that an object has the finalizer and is outside of the watched set. It ignores Object.Left.
func (t *Table) Found(o *Object) {
	old := t.objects[o.Key]
	t.found(o, t.left[o.Key] || old.Left && old.UID == o.UID)
	delete(t.left, o.Key)
}

func (t *Table) found(o *Object, left bool) {
	if _, known := t.objects[o.Key]; !known && len(t.objects) >= MaxObjects {
		t.more = true
		return
	}
	if t.objects == nil {
		t.objects, t.waited = map[abi.Key]Object{}, map[abi.Key]uint8{}
	}
	found := *o
	found.Left = left
	t.objects[o.Key], t.waited[o.Key] = found, 0
}

// Gone records that an object is gone, has no finalizer, or is watched.
func (t *Table) Gone(key abi.Key) {
	delete(t.left, key)
	delete(t.objects, key)
	delete(t.waited, key)
}

// Listed replaces all objects by the result of a list. unknown is the reason why objects may be missing. Of too many objects, those that
// are being deleted are remembered.
func (t *Table) Listed(objects []Object, unknown string) {
	old := t.objects
	*t = Table{listed: true, unknown: unknown, left: t.left}
	slices.SortStableFunc(objects, deletingFirst)
	for i := range objects {
		o := &objects[i]
		was := old[o.Key]
		t.found(o, t.left[o.Key] || was.Left && was.UID == o.UID)
	}
	t.left = nil
}

// deletingFirst orders objects.
func deletingFirst(a, b Object) int {
	if a.Deleted.IsZero() != b.Deleted.IsZero() {
		return map[bool]int{true: 1, false: -1}[a.Deleted.IsZero()]
	}
	return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
}

// View returns the current state.
func (t *Table) View() *View {
	return &View{Objects: slices.SortedFunc(maps.Values(t.objects), deletingFirst), Unknown: t.unknown}
}
