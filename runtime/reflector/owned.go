// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"iter"
	"slices"
)

// Owned yields the objects that have an owner with this uid, controlling or not, after the reference after, ordered by namespace and name;
// if a namespace is given, only those in it. The result is a snapshot.
//
// Once Owned has been called, the store maintains an index of owners: about 100 bytes for each owner of an object.
func (s *Store) Owned(uid, namespace string, after ObjectRef) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		for _, o := range s.ownedBy(uid, after) {
			if (namespace == "" || o.ref.Namespace == namespace) && !yield(o) {
				return
			}
		}
	}
}

// ownedBy returns the objects of an owner after a reference. The first call after each list reads the owners of all objects, with the lock
// held.
func (s *Store) ownedBy(uid string, after ObjectRef) []*Object {
	s.mu.RLock()
	if s.owned != nil {
		defer s.mu.RUnlock()
	} else {
		s.mu.RUnlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.owned == nil {
			s.owned = newOwned(s.objects)
		}
	}
	refs := s.owned[uid]
	at, found := slices.BinarySearchFunc(refs, after, ObjectRef.Compare)
	if found {
		at++
	}
	list := make([]*Object, 0, len(refs)-at)
	for _, ref := range refs[at:] {
		list = append(list, s.objects[ref])
	}
	return list
}

// owned maps the uid of an owner to the sorted references of its objects.
type owned map[string][]ObjectRef

func newOwned(objects map[ObjectRef]*Object) owned {
	all := owned{}
	for ref, o := range objects {
		for i := range o.owners {
			all[o.owners[i].uid] = append(all[o.owners[i].uid], ref)
		}
	}
	for uid, refs := range all {
		slices.SortFunc(refs, ObjectRef.Compare)
		all[uid] = slices.Compact(refs) // an object may reference an owner twice
	}
	return all
}

// change replaces the state old of an object with o; either may be nil.
func (w owned) change(old, o *Object) {
	if old != nil && o != nil && slices.Equal(old.owners, o.owners) {
		return
	}
	if old != nil {
		for i := range old.owners {
			w.remove(old.owners[i].uid, old.ref)
		}
	}
	if o != nil {
		for i := range o.owners {
			w.add(o.owners[i].uid, o.ref)
		}
	}
}

func (w owned) add(uid string, ref ObjectRef) {
	if at, found := slices.BinarySearchFunc(w[uid], ref, ObjectRef.Compare); !found {
		w[uid] = slices.Insert(w[uid], at, ref)
	}
}

func (w owned) remove(uid string, ref ObjectRef) {
	at, found := slices.BinarySearchFunc(w[uid], ref, ObjectRef.Compare)
	if !found {
		return
	}
	if w[uid] = slices.Delete(w[uid], at, at+1); len(w[uid]) == 0 {
		delete(w, uid)
	}
}
