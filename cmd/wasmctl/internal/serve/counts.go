// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// countEvery is the interval at which the objects of Reconcilers are counted. The status has a new number
// at most that often.
const countEvery = 5 * time.Second

// counts requests a look at each Reconciler whose number of objects has changed. It implements
// wasmctl.Source.
type counts struct {
	server *Server
	kind   string
}

// Run implements wasmctl.Source.
func (c counts) Run(ctx context.Context, reconcile func(context.Context, ...abi.Key)) error {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if keys := c.changed(); len(keys) > 0 {
				reconcile(ctx, keys...)
			}
		}
	}
}

// String implements wasmctl.Source.
func (c counts) String() string { return "of changed numbers of objects" }

// changed returns the Reconcilers whose number of objects has changed since the last look.
func (c counts) changed() (keys []abi.Key) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	for of, u := range c.server.units {
		if of.kind == c.kind && u.countChanged() {
			keys = append(keys, of.Key)
		}
	}
	return keys
}

// counted is a wasmctl.Store.
type counted interface{ Len() (int, error) }

// setCount records the number of objects in a status; nil if there is none. The status of a Reconciler
// that is being deleted still has the number after its controller has ended.
func (u *unit) setCount(o *v1alpha1.Objects) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.store = nil; o != nil && u.controller != nil {
		u.store, u.objects = u.controller.Store(), o.Watched
	}
}

// countChanged reports whether the number of objects differs from the one in the status.
func (u *unit) countChanged() bool {
	u.mu.Lock()
	store, before := u.store, u.objects
	u.mu.Unlock()
	if store == nil {
		return false
	}
	n, err := store.Len()
	return err == nil && int64(n) != before
}
