// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"iter"
	"unique"
)

// Labels are the labels of an Object. The zero value has none. It implements labels.Labels of apimachinery, so that a labels.Selector can
// be matched against it.
//
// Keys recur in most objects of a resource and are shared between them. Values often are unique (a pod's own name, a hash), and sharing a
// unique string costs more than it saves.
type Labels struct {
	pairs []label // sorted by key
}

type label struct {
	key   unique.Handle[string]
	value string
}

// Lookup returns the value of a label, and whether it exists.
func (l Labels) Lookup(key string) (value string, exists bool) {
	for _, p := range l.pairs {
		if p.key.Value() == key {
			return p.value, true
		}
	}
	return "", false
}

// Has reports whether a label exists.
func (l Labels) Has(key string) bool {
	_, ok := l.Lookup(key)
	return ok
}

// Get returns the value of a label, or "" if it does not exist.
func (l Labels) Get(key string) string {
	v, _ := l.Lookup(key)
	return v
}

// Len returns the number of labels.
func (l Labels) Len() int { return len(l.pairs) }

// All yields the labels, sorted by key.
func (l Labels) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, p := range l.pairs {
			if !yield(p.key.Value(), p.value) {
				return
			}
		}
	}
}
