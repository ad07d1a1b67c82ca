package reflector

import (
	"iter"
	"sync/atomic"
	"unique"

	"github.com/wasmctl/wasmctl/abi"
)

// ObjectRef names one object of a resource. A cluster-scoped object has no
// namespace. It is the Key that crosses the sandbox wall, so that nothing is
// converted on the way from a watch event to a guest.
type ObjectRef = abi.Key

// Object is a Kubernetes object as the runtime keeps it: its msgpack bytes,
// encoded once when it is received, and the few fields that the host itself
// reads. What an Object says never changes after Pack, so it is shared by pointer
// and read from any goroutine without a lock. How it holds its bytes may: see
// Compressor.
type Object struct {
	ref             ObjectRef
	uid             string
	resourceVersion string
	generation      int64
	deleting        bool
	annotated       bool // there are annotations
	instructed      bool // one of them is for wasmctl
	finalized       bool // there are finalizers
	labels          Labels
	owners          []owner
	body            atomic.Pointer[body]
	size            uint32        // of the msgpack
	reads           atomic.Uint32 // since the Compressor has last looked
	tried           uint8         // how many dictionaries there were when none did, and 1; guarded by Compressor.mu
}

// Ref returns the object's name and namespace.
func (o *Object) Ref() ObjectRef { return o.ref }

// UID returns metadata.uid: it tells an object from one of the same name that
// was created after the first was deleted.
func (o *Object) UID() string { return o.uid }

// ResourceVersion returns metadata.resourceVersion: it tells the states of one
// object apart.
func (o *Object) ResourceVersion() string { return o.resourceVersion }

// Generation returns metadata.generation, or 0 where the resource has none.
func (o *Object) Generation() int64 { return o.generation }

// Deleting reports whether deletion was requested (metadata.deletionTimestamp
// is set) and the object waits for its finalizers.
func (o *Object) Deleting() bool { return o.deleting }

// Labels returns metadata.labels. The value fits a labels.Selector.
func (o *Object) Labels() Labels { return o.labels }

// Msgpack returns the object as one msgpack map, as abi.AppendValue writes it.
// The caller must not change the bytes. Of a compressed object they are others each
// time, until it is read often.
func (o *Object) Msgpack() []byte {
	b := o.body.Load()
	if b.dictionary == nil {
		if o.reads.Load() == 0 { // a write would take the line from other CPUs
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

// peek is Msgpack for who looks at a field or two: it does not count as a read.
func (o *Object) peek() []byte { return o.body.Load().plain(int(o.size)) }

// Same reports whether both are one state of one object: same uid, same
// resourceVersion. Without a resourceVersion, which some aggregated APIs leave
// out, no two are known to be the same.
func (o *Object) Same(p *Object) bool {
	return o.uid == p.uid && o.resourceVersion == p.resourceVersion && o.resourceVersion != ""
}

// Owner is one of metadata.ownerReferences. It carries the API group without
// the version, because owners are matched by group and kind (rule 24).
type Owner struct {
	Group, Kind, Name, UID string
	// Controller says that this owner is the one that manages the object.
	Controller bool
}

// owner is Owner with the repeated strings shared between objects.
type owner struct {
	group, kind unique.Handle[string]
	name, uid   string
	controller  bool
}

// Owners yields metadata.ownerReferences in their order.
func (o *Object) Owners() iter.Seq[Owner] {
	return func(yield func(Owner) bool) {
		for _, w := range o.owners {
			if !yield(Owner{w.group.Value(), w.kind.Value(), w.name, w.uid, w.controller}) {
				return
			}
		}
	}
}
