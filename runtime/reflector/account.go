// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"iter"
	"sync/atomic"
)

const (
	// objectBytes is the approximate memory of an object in addition to its msgpack.
	objectBytes = 300
	// entryBytes is the approximate memory of a store for one object.
	entryBytes = 100
)

// Account counts the memory of the objects in several stores. An object that several of them have counts once, and an object must not be in
// stores of several accounts. A nil Account counts nothing. It is safe for concurrent use.
type Account struct{ bytes atomic.Int64 }

// Bytes returns the approximate memory of the objects: their msgpack, as if nothing were compressed, their own fields, and the entries of the
// stores.
func (a *Account) Bytes() int64 { return a.bytes.Load() }

// Cost returns the bytes that an Account counts for an object that one store has.
func (o *Object) Cost() int64 { return int64(o.size) + objectBytes + entryBytes }

// Stored reports whether a store with an Account has the object.
func (o *Object) Stored() bool { return o.stores.Load() > 0 }

// enter charges the objects of a store.
func (a *Account) enter(objects iter.Seq[*Object]) {
	if a == nil {
		return
	}
	for o := range objects {
		a.add(o)
	}
}

// leave ends the charge for objects of a store.
func (a *Account) leave(objects iter.Seq[*Object]) {
	if a == nil {
		return
	}
	for o := range objects {
		a.remove(o)
	}
}

// replace charges o instead of old; either may be nil.
func (a *Account) replace(old, o *Object) {
	if a == nil {
		return
	}
	if o != nil {
		a.add(o)
	}
	if old != nil {
		a.remove(old)
	}
}

func (a *Account) add(o *Object) {
	if o.stores.Add(1) == 1 {
		a.bytes.Add(o.Cost())
	} else {
		a.bytes.Add(entryBytes)
	}
}

func (a *Account) remove(o *Object) {
	if o.stores.Add(-1) == 0 {
		a.bytes.Add(-o.Cost())
	} else {
		a.bytes.Add(-entryBytes)
	}
}
