// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
)

// Children finds the children of an object in the cache. Any number of goroutines may use it.
type Children interface {
	// Children calls yield with each object in the cache whose controller owner has this UID, until
	// yield returns false. It has only kinds that the module owns. The owner's key is for caches
	// that look up by key.
	Children(owner abi.Key, uid string, yield func(gvr schema.GroupVersionResource, child abi.Key, uid, resourceVersion string) bool)
}

// cachedChild is a child in the cache.
type cachedChild struct {
	gvr                  schema.GroupVersionResource
	key                  abi.Key
	uid, resourceVersion string
}

// Declare applies a declared result to the cluster. It applies the children in order with
// server-side apply. Then, if d.Prune is set, it deletes children of the owner that d does not
// list. Then it applies the status. It stops at the first error: earlier applies stay, but nothing
// is pruned and no status is written, because the status describes the whole.
//
// All children are checked before the first one is sent: their keys, duplicates, and the policy
// (patch and create, which server-side apply needs). The host makes the owner their controller. A
// child with another controller stays unchanged, and is a conflict.
//
// In a foreground deletion of the owner, the children are neither applied nor pruned: the garbage
// collector deletes them, and would wait for those that are created again.
//
// A request that cannot change anything is not sent. That is a request with the same bytes as the
// last accepted one, if the cached object still has the resourceVersion that resulted from it. If
// the object has changed since, its event is on its way and causes another run.
//
// An error is a *WriteError, in which errors.As finds an *abi.ResultError. Any number of goroutines
// may call Declare for different owners.
func (a *API) Declare(ctx context.Context, of Owner, d *abi.Declared) error {
	o, err := of.read()
	if err != nil {
		return fmt.Errorf("declared result of %s: %w", of.Kind.Name(), err)
	}
	o.ledger.account = a.cfg.Account
	defer o.ledger.close()
	if err := o.ledger.takeBytes(declaredCopies * sizeOf(d)); err != nil {
		return a.writeError(ctx, StepApply, &request{kind: o.kind, key: o.key}, err)
	}
	m, keep := a.recall(o)
	defer keep()
	if !o.foreground {
		if err := a.declareChildren(ctx, o, m, d); err != nil {
			return err
		}
	}
	if d.Status == nil {
		return nil
	}
	return a.applyStatus(ctx, o, m, d)
}

// declareChildren applies the children, and prunes.
func (a *API) declareChildren(ctx context.Context, o *owner, m *remembered, d *abi.Declared) error {
	cached := a.cachedChildren(o)
	settled := m.settled(cached)
	if len(settled) < len(d.Apply) && !m.send {
		o.current = m.current(cached)
	}
	children, err := a.prepare(ctx, o, d, settled)
	if err != nil {
		return err
	}
	if err := a.applyAll(ctx, o, m, children); err != nil || !d.Prune {
		return err
	}
	return a.prune(ctx, o, m, cached)
}

// sizeOf returns the size of a declared result, in bytes.
func sizeOf(d *abi.Declared) int {
	n := len(d.Status)
	for _, child := range d.Apply {
		n += len(child)
	}
	return n
}

// recall returns the remembered facts about an owner. The caller must call keep afterwards. A dry
// run remembers nothing, and does not change the facts about writes.
func (a *API) recall(o *owner) (m *remembered, keep func()) {
	if a.dry != DryRunNone {
		return &remembered{uid: o.uid, children: map[childRef]applied{}}, func() {}
	}
	var epoch uint64
	if a.cfg.Cache != nil {
		epoch = a.cfg.Cache.Epoch()
	}
	m = a.memory.take(o.key, o.uid, epoch)
	return m, func() { a.memory.put(o.key, m) }
}

// Forget discards the facts that Declare remembers of a deleted object.
func (a *API) Forget(key abi.Key) { a.memory.forget(key) }

// Renew discards the facts that Declare remembers of the given objects, or of all objects if there are
// none: the next run of each sends all requests, whatever the cache has.
func (a *API) Renew(objects []abi.Key) { a.memory.renew(objects) }

func (a *API) cachedChildren(o *owner) []cachedChild {
	var cached []cachedChild
	if a.cfg.Children == nil {
		return nil
	}
	a.cfg.Children.Children(o.key, o.uid, func(gvr schema.GroupVersionResource, key abi.Key, uid, resourceVersion string) bool {
		cached = append(cached, cachedChild{gvr, key, uid, resourceVersion})
		return true
	})
	return cached
}
