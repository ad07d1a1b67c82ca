// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"context"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// maxTurn is the longest time that a list waits for those of other watches, which may have lost their connection (rule 13).
const maxTurn = 10 * time.Second

// listing is the account of one list, from its request until its objects are in the store. Each list has its own. The reflector can abandon a
// list and request another one before the first has ended, and the end of the first must not affect the second.
type listing struct {
	kind  *kindWatches
	asked time.Time // when the list was requested; zero if it may be an outdated one

	mu    sync.Mutex
	ended bool  // guarded by mu
	turn  bool  // guarded by mu; the list holds the turn of the kind
	bytes int64 // guarded by mu; of objects that no store has yet
	// missing is the cost of the objects that only this store has and that have not come in the list: those that the list replaces. It is
	// guarded by mu.
	missing int64
}

// list begins a list for a store. The watches of one kind list one after the other, so that each finds the objects of the previous one. The
// caller must end the list.
func (k *kindWatches) list(ctx context.Context, store *reflector.Store) *listing {
	l := &listing{kind: k}
	wait := time.NewTimer(maxTurn)
	defer wait.Stop()
	select {
	case k.turn <- struct{}{}:
		l.turn = true
	case <-wait.C:
	case <-ctx.Done():
	}
	if k.tenant.maxBytes > 0 {
		for _, o := range store.List() {
			l.missing += exclusive(o)
		}
	}
	return l
}

// exclusive returns the cost of an object of a store, or 0 if another store has it too.
func exclusive(o *reflector.Object) int64 {
	if o.Shared() {
		return 0
	}
	return o.Cost()
}

// end ends the list. For a nil list or a second call, it has no effect.
func (l *listing) end() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	l.kind.tenant.listing.Add(-l.bytes)
	if l.turn {
		<-l.kind.turn
	}
}

// add charges an object of the list, unless the list has ended. before is the state of the object in the store of the watch, or nil.
func (l *listing) add(o, before *reflector.Object) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	tenant := l.kind.tenant
	if before != nil && tenant.maxBytes > 0 {
		l.missing -= exclusive(before)
	}
	if o.Stored() {
		return nil
	}
	n := growth(o, before)
	if err := tenant.admit(n - max(0, l.missing)); err != nil {
		return err
	}
	l.bytes += n
	tenant.listing.Add(n)
	return nil
}

// growth returns the memory that the store of a watch needs for the next state of an object.
func growth(o, before *reflector.Object) int64 {
	switch {
	case o.Stored():
		return 0
	case before != nil:
		return max(0, o.Cost()-before.Cost())
	}
	return o.Cost()
}
