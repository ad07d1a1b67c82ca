// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Tenant is the common part of the watches that one tenant causes, under any identity and with any selectors: they have one copy of each
// object, and bounds of their memory and of their number. It is safe for concurrent use.
type Tenant struct {
	maxBytes int64         // 0 is no bound
	slots    chan struct{} // one element for each watch; nil is no bound
	account  reflector.Account
	listing  atomic.Int64 // the bytes of listed objects that are not in a store yet
	charge   charge

	mu    sync.Mutex
	kinds map[Source]*kindWatches // guarded by mu; those with a watch
}

// NewTenant returns a Tenant. maxBytes bounds the memory of cached objects, and maxWatches the number of watches; 0 is no bound. The objects
// are charged to memory, unless it is nil.
func NewTenant(maxBytes int64, maxWatches int, memory Memory) *Tenant {
	t := &Tenant{maxBytes: maxBytes, kinds: map[Source]*kindWatches{}}
	t.charge.memory = memory
	if maxWatches > 0 {
		t.slots = make(chan struct{}, maxWatches)
	}
	return t
}

// Bytes returns the memory of the cached objects, of which those in several caches count once.
func (t *Tenant) Bytes() int64 { return t.account.Bytes() + t.listing.Load() }

// boundError is the reason why a tenant's watch is refused.
type boundError struct{ message string }

// Error implements error.
func (e *boundError) Error() string { return e.message }

// admit returns an error if n more bytes of objects exceed the bound, or the memory of the process, after they have replaced other bytes. Until
// then, and while another watch has the previous state of the same objects, they may take twice the bound.
func (t *Tenant) admit(n, replaced int64) error {
	used := t.Bytes() + n
	if t.maxBytes == 0 || used-replaced <= t.maxBytes && used <= 2*t.maxBytes {
		if err := t.charge.cover(used - replaced); err != nil {
			return &boundError{fmt.Sprintf("no memory for the cached objects of this tenant: %v", err)}
		}
		return nil
	}
	return &boundError{fmt.Sprintf("the cached objects of all controllers of this tenant would exceed %s (--max-cache): select fewer objects, or ask the operator for a higher bound", humanize.Bytes(t.maxBytes))}
}

// enter waits until the number of watches permits another one, which must leave later. It calls wait before it waits. The error is that of
// ctx.
func (t *Tenant) enter(ctx context.Context, wait func(error)) error {
	if t.slots == nil {
		return nil
	}
	select {
	case t.slots <- struct{}{}:
		return nil
	default:
	}
	wait(&boundError{fmt.Sprintf("the controllers of this tenant have %d watches, which is the bound (--max-watches): use equal selectors, which share a watch, or ask the operator for a higher bound", cap(t.slots))})
	select {
	case t.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave ends a watch, whose objects are no longer cached.
func (t *Tenant) leave() {
	t.charge.release(t.Bytes)
	if t.slots != nil {
		<-t.slots
	}
}

// kindWatches are watches that can have the same objects: they differ in selectors or identity only.
type kindWatches struct {
	tenant     *Tenant
	compressor *reflector.Compressor // nil if nothing is compressed
	turn       chan struct{}         // has an element while a watch lists

	storing sync.Mutex // held while a watch stores an object, if there are several
	mu      sync.RWMutex
	stores  []*reflector.Store // guarded by mu
}

// join adds a watch to those of its kind.
func (t *Tenant) join(source Source, store *reflector.Store, compress bool) *kindWatches {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[source.kind()]
	if k == nil {
		k = &kindWatches{tenant: t, turn: make(chan struct{}, 1)}
		if compress {
			k.compressor = &reflector.Compressor{}
		}
		t.kinds[source.kind()] = k
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stores = append(k.stores, store)
	return k
}

// part removes a watch.
func (t *Tenant) part(source Source, k *kindWatches, store *reflector.Store) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stores = slices.DeleteFunc(k.stores, func(s *reflector.Store) bool { return s == store })
	if len(k.stores) == 0 {
		delete(t.kinds, source.kind())
	}
}

// shared reports whether there are several watches.
func (k *kindWatches) shared() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.stores) > 1
}

// known returns the copy of an object that another watch has, or o. Contents are compared: an aggregated API can answer identities
// differently, and a restore of etcd assigns versions again.
func (k *kindWatches) known(o *reflector.Object) *reflector.Object {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if len(k.stores) == 1 {
		return o
	}
	for _, s := range k.stores {
		if c := s.Get(o.Ref()); c != nil && (c == o || c.Same(o) && c.Equal(o)) {
			return c
		}
	}
	return o
}
