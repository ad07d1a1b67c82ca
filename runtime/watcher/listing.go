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

	mu       sync.Mutex
	ended    bool  // guarded by mu
	turn     bool  // guarded by mu; the list holds the turn of the kind
	bytes    int64 // guarded by mu; of objects that no store has yet
	replaced int64 // guarded by mu; the cost of the objects of the store that have not come unchanged
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
	if t := k.tenant; t.maxBytes > 0 || t.charge.memory != nil {
		for _, o := range store.List() {
			l.replaced += o.Cost()
		}
	}
	return l
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

// add charges an object of the list, unless the list has ended. before is the state of the object in the store of the watch, or nil. The error
// is that of the tenant's bound. An object that a store has needs no memory, but it shows that the list replaces less than it seemed.
func (l *listing) add(o, before *reflector.Object) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	if o == before {
		l.replaced -= o.Cost()
	}
	n := int64(0)
	if !o.Stored() {
		n = o.Cost()
	}
	if l.bytes+n == 0 {
		return nil
	}
	if err := l.kind.tenant.admit(n, l.replaced); err != nil {
		return err
	}
	l.bytes += n
	l.kind.tenant.listing.Add(n)
	return nil
}
