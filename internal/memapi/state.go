// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// table has the objects of one resource, and their history. Server.mu guards it.
type table struct {
	schema.GroupResource
	objects map[abi.Key]*state
	log     []*state // all states that were ever stored, by version
}

// state is an object from one resourceVersion to the next. It does not change once
// it is stored.
type state struct {
	version int64
	at      time.Time
	key     abi.Key
	object  map[string]any
	gone    bool   // object is the final state
	before  *state // the previous state; nil if the object did not exist
	// defaulted reports that the stored object lacks defaults that object has: the next
	// write adds them, even if it changes nothing else.
	defaulted bool
}

func (st *state) unstructured() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: st.object}
}

// table returns the table of a kind's resource. The caller holds mu.
func (s *Server) table(k *Kind) *table {
	gr := k.GVR().GroupResource()
	t := s.tables[gr]
	if t == nil {
		t = &table{GroupResource: gr, objects: map[abi.Key]*state{}}
		s.tables[gr] = t
	}
	return t
}

// live returns the object that a request names; nil if there is none. The caller
// holds mu.
func (s *Server) live(r *Request) map[string]any {
	if st := s.table(&r.Kind).objects[r.key()]; st != nil {
		return st.object
	}
	return nil
}

func (r *Request) key() abi.Key { return abi.Key{Namespace: r.Namespace, Name: r.Name} }

// store makes object the state of a key and wakes the watches. The object has the version
// of the Server. The caller holds mu.
func (s *Server) store(k *Kind, key abi.Key, object map[string]any, gone bool) {
	t := s.table(k)
	next := &state{version: s.version, at: s.cfg.Now(), key: key, object: object, gone: gone, before: t.objects[key]}
	t.log = append(t.log, next)
	t.objects[key] = next
	if gone {
		delete(t.objects, key)
	}
	s.wake()
}

// at returns the states as of a version, by key; newest is the newest version.
func (t *table) at(version, newest int64) []*state {
	there := t.objects
	if version < newest {
		there = map[abi.Key]*state{}
		for _, st := range t.log {
			if st.version > version {
				break
			}
			there[st.key] = st
			if st.gone {
				delete(there, st.key)
			}
		}
	}
	return slices.SortedFunc(maps.Values(there), func(a, b *state) int { return a.key.Compare(b.key) })
}

// Compact forgets the history: watches and lists that start before now get 410.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.compacted = s.version
}

// All returns the objects of a kind by key. They must not be changed.
func (s *Server) All(k Kind) map[abi.Key]*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[abi.Key]*unstructured.Unstructured{}
	for key, st := range s.table(&k).objects {
		all[key] = st.unstructured()
	}
	return all
}

// Get returns a copy of an object, or a NotFound error.
func (s *Server) Get(k Kind, key abi.Key) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Request{Verb: "get", Kind: k, Namespace: key.Namespace, Name: key.Name}
	live := s.live(r)
	if live == nil {
		return nil, r.notFound()
	}
	return (&unstructured.Unstructured{Object: live}).DeepCopy(), nil
}

// Since returns the state in which an object of this key last began to match, and whether
// it has stopped matching since; nil if it never matched. The state must not be changed.
func (s *Server) Since(k Kind, key abi.Key, match func(*unstructured.Unstructured) bool) (o *unstructured.Unstructured, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table(&k)
	for _, st := range slices.Backward(t.log) {
		if st.key != key || st.gone || !match(st.unstructured()) {
			continue
		}
		over = t.objects[key] != st
		for st.before != nil && match(st.before.unstructured()) {
			st = st.before
		}
		return st.unstructured(), over
	}
	return nil, false
}

// DeletedAfter reports whether an object was deleted at a version later than the given one.
func (s *Server) DeletedAfter(k Kind, key abi.Key, version int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.table(&k).log, func(st *state) bool { return st.gone && st.key == key && st.version > version })
}

// Listed reports whether a complete list of this scope was ever sent.
func (s *Server) Listed(resource, namespace, selector string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed[resource+"/"+namespace+"/"+selector]
}

// scopeID identifies the scope of a list or a watch.
func (r *Request) scopeID() string {
	return r.Kind.Resource + "/" + r.Namespace + "/" + r.Query.Get("labelSelector")
}

// Change changes an object, including its status, by the rules of an update. If the object
// does not exist and create is set, change gets an object that has only a name. If change
// returns an error, the object is not modified, and Change returns that error.
func (s *Server) Change(k Kind, key abi.Key, create bool, change func(*unstructured.Unstructured) error) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Request{Verb: "update", Kind: k, Namespace: key.Namespace, Name: key.Name}
	live := s.live(r)
	if live == nil && !create {
		return nil, r.notFound()
	}
	next := r.basis(live)
	next.SetNamespace(key.Namespace)
	next.SetName(key.Name)
	if err := change(next); err != nil {
		return nil, err
	}
	object, err := s.write(r, live, next.Object)
	if err != nil {
		return nil, err
	}
	return (&unstructured.Unstructured{Object: object}).DeepCopy(), nil
}

// Delete deletes an object as a request does, and returns its last state. If uid is set and
// the object has a different one, the error is a conflict.
func (s *Server) Delete(k Kind, key abi.Key, uid string) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &Request{Verb: "delete", Kind: k, Namespace: key.Namespace, Name: key.Name}
	object, err := s.delete(r, deletion(uid))
	if err != nil {
		return nil, err
	}
	return (&unstructured.Unstructured{Object: object}).DeepCopy(), nil
}
