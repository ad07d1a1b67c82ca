// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bytes"
	"iter"
	"sync/atomic"
	"unique"

	"github.com/wasmctl/wasmctl/abi"
)

// ObjectRef identifies one object of a resource. A cluster-scoped object has no namespace. It is also the key that guests use, so that
// nothing is converted between a watch event and a guest.
type ObjectRef = abi.Key

// Object is a Kubernetes object in the form that the runtime stores: its msgpack bytes, encoded once when it is received, and the few
// fields that the host uses. The content of an Object is immutable after Pack, so it is shared by pointer and read by any goroutine without
// a lock. Only the representation of its bytes may change: see Compressor.
type Object struct {
	ref             ObjectRef
	uid             string
	resourceVersion string
	generation      int64
	deleting        bool
	annotated       bool // there are annotations
	instructed      bool // one of the annotations is an instruction for wasmctl
	finalized       bool // there are finalizers
	labels          Labels
	owners          []owner
	applied         unique.Handle[string] // see Applied; the zero Handle if nothing was applied
	body            atomic.Pointer[body]
	size            uint32        // of the uncompressed msgpack
	reads           atomic.Uint32 // since the last look of the Compressor
	stores          atomic.Int32  // the number of stores that have the object and an Account
	tried           uint8         // one more than the number of dictionaries at the last failed attempt; guarded by Compressor.mu
}

// Ref returns the object's namespace and name.
func (o *Object) Ref() ObjectRef { return o.ref }

// UID returns metadata.uid. It distinguishes an object from a later one with the same name.
func (o *Object) UID() string { return o.uid }

// ResourceVersion returns metadata.resourceVersion. It distinguishes the states of one object.
func (o *Object) ResourceVersion() string { return o.resourceVersion }

// Generation returns metadata.generation, or 0 if the resource has none.
func (o *Object) Generation() int64 { return o.generation }

// Deleting reports whether deletion was requested (metadata.deletionTimestamp is set) and the object waits for its finalizers.
func (o *Object) Deleting() bool { return o.deleting }

// Labels returns metadata.labels. The result can be matched by a labels.Selector.
func (o *Object) Labels() Labels { return o.labels }

// Applied returns the entries of metadata.managedFields as package managed has them, for the uid of ControllerUID. It is "" if nothing was
// applied to the object with server-side apply, or if managedFields or only metadata are stored.
func (o *Object) Applied() string {
	if o.applied == (unique.Handle[string]{}) {
		return ""
	}
	return o.applied.Value()
}

// ControllerUID returns the uid of the controlling owner, or "".
func (o *Object) ControllerUID() string {
	for i := range o.owners {
		if o.owners[i].controller {
			return o.owners[i].uid
		}
	}
	return ""
}

// Msgpack returns the object as one msgpack map in the format of abi.AppendValue. The caller must not change the bytes. For a compressed
// object, each call returns a new slice until the object has been read often.
func (o *Object) Msgpack() []byte {
	b := o.body.Load()
	if b.dictionary == nil {
		if o.reads.Load() == 0 { // an unconditional write would invalidate the cache line of other CPUs
			o.reads.Store(1)
		}
		return b.bytes
	}
	plain := b.plain(int(o.size))
	if o.reads.Add(1) >= oftenRead {
		o.body.CompareAndSwap(b, &body{bytes: plain})
	}
	return plain
}

// peek is like Msgpack, for reading a few fields: it does not count as a read.
func (o *Object) peek() []byte { return o.body.Load().plain(int(o.size)) }

// Same reports whether both are the same state of the same object: same uid and same resourceVersion. Without a resourceVersion, which some
// aggregated APIs omit, states are never considered the same.
func (o *Object) Same(p *Object) bool {
	return o.uid == p.uid && o.resourceVersion == p.resourceVersion && o.resourceVersion != ""
}

// Equal reports whether both have the same content.
func (o *Object) Equal(p *Object) bool { return bytes.Equal(o.peek(), p.peek()) }

// Owner is one of metadata.ownerReferences. It contains the API group without the version, because owners are matched by group and kind
// (rule 24).
type Owner struct {
	Group, Kind, Name, UID string
	// Controller marks the managing controller of the object.
	Controller bool
}

// owner is Owner with the repeated strings shared between objects.
type owner struct {
	group, kind unique.Handle[string]
	name, uid   string
	controller  bool
}

// Owners yields metadata.ownerReferences in order.
func (o *Object) Owners() iter.Seq[Owner] {
	return func(yield func(Owner) bool) {
		for _, w := range o.owners {
			if !yield(Owner{w.group.Value(), w.kind.Value(), w.name, w.uid, w.controller}) {
				return
			}
		}
	}
}
