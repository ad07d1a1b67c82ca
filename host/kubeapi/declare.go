package kubeapi

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// Children is what the cache knows of the children of an object. It may be
// asked by any number of goroutines.
type Children interface {
	// Children calls yield with each object in the cache whose controller owner
	// has this uid, until yield returns false. Only kinds that the module owns
	// are among them. The owner's key is given for caches that look up by it.
	Children(owner abi.Key, uid string, yield func(gvr schema.GroupVersionResource, child abi.Key, uid, resourceVersion string) bool)
}

// cachedChild is a child as the cache knows it.
type cachedChild struct {
	gvr                  schema.GroupVersionResource
	key                  abi.Key
	uid, resourceVersion string
}

// Declare makes a declared result true of the cluster: it applies the children
// in their order with server-side apply, then, if d.Prune, deletes what the
// owner controls and d does not list, then applies the status. It stops at the
// first error: what was applied stays, and nothing is pruned and no status is
// written, since a status speaks of the whole.
//
// All children are checked before the first is sent: their keys, that none is
// there twice, the policy (patch and create, which server-side apply needs). The
// host makes the owner their controller; a child that has another one is left
// alone, and is a conflict.
//
// A request that cannot change anything is not sent: one whose bytes are those
// of the last that was accepted, while the object's resourceVersion in the cache
// is still the one that it led to. If the object has changed since then, its
// event is on its way, and causes another run.
//
// An error is a *WriteError, in which errors.As finds an *abi.ResultError.
// Any number of goroutines may declare for different owners.
func (a *API) Declare(ctx context.Context, of Owner, d *abi.Declared) error {
	o, err := of.read()
	if err != nil {
		return fmt.Errorf("declared result of %s: %w", of.Kind.Name(), err)
	}
	o.ledger.account = a.account
	defer o.ledger.close()
	if err := o.ledger.takeBytes(declaredCopies * sizeOf(d)); err != nil {
		return a.writeError(ctx, StepApply, &request{kind: o.kind, key: o.key}, err)
	}
	m, keep := a.recall(o)
	defer keep()
	cached := a.cachedChildren(o)
	children, err := a.prepare(ctx, o, d, m.settled(cached))
	if err != nil {
		return err
	}
	if err := a.applyAll(ctx, o, m, children); err != nil {
		return err
	}
	if d.Prune {
		if err := a.prune(ctx, o, m, cached); err != nil {
			return err
		}
	}
	if d.Status == nil {
		return nil
	}
	return a.applyStatus(ctx, o, m, d)
}

// sizeOf returns how many bytes a declared result has.
func sizeOf(d *abi.Declared) int {
	n := len(d.Status)
	for _, child := range d.Apply {
		n += len(child)
	}
	return n
}

// recall returns what is remembered of an owner, which the caller keeps when it is
// done. A dry run remembers nothing, and leaves alone what is known of writes.
func (a *API) recall(o *owner) (m *remembered, keep func()) {
	if a.dry != DryRunNone {
		return &remembered{uid: o.uid, children: map[childRef]applied{}}, func() {}
	}
	m = a.memory.take(o.key, o.uid)
	return m, func() { a.memory.put(o.key, m) }
}

// Forget drops what Declare remembers of an object, which is gone.
func (a *API) Forget(key abi.Key) { a.memory.forget(key) }

func (a *API) cachedChildren(o *owner) []cachedChild {
	var cached []cachedChild
	if a.children == nil {
		return nil
	}
	a.children.Children(o.key, o.uid, func(gvr schema.GroupVersionResource, key abi.Key, uid, resourceVersion string) bool {
		cached = append(cached, cachedChild{gvr, key, uid, resourceVersion})
		return true
	})
	return cached
}
