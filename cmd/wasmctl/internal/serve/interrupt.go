// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wasmctl/wasmctl/abi"
)

// interruptEvery is how long a look at an outdated state of a Reconciler may go on.
const interruptEvery = 250 * time.Millisecond

// errOutdated ends a look because the Reconciler was suspended or deleted in the meantime, or because
// it wants another module: this must not wait for the registry of the module that it wanted before.
var errOutdated = errors.New("the Reconciler has changed in the meantime, or the process stops")

// busy is a look that may take long.
type busy struct {
	object    *reconciler
	interrupt context.CancelCauseFunc
}

// begin returns the context of a look at a state of a Reconciler. It ends as soon as that state is
// outdated, unless the look only stops the module. The caller must call end.
func (u *unit) begin(ctx context.Context, o *reconciler) (_ context.Context, end func()) {
	if o.spec.Suspend {
		return ctx, func() {}
	}
	ctx, interrupt := context.WithCancelCause(ctx)
	u.setBusy(&busy{o, interrupt})
	return ctx, func() {
		u.setBusy(nil)
		interrupt(nil)
	}
}

func (u *unit) setBusy(b *busy) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = b
}

// isOutdated reports whether a look was interrupted.
func isOutdated(looking context.Context) bool { return errors.Is(context.Cause(looking), errOutdated) }

// interrupts interrupts looks at outdated states. It implements wasmctl.Source, but requests no look:
// the change itself does.
type interrupts struct {
	server *Server
	kind   string
}

// Run implements wasmctl.Source. At the end of ctx, the process stops, or another replica takes over.
func (i interrupts) Run(ctx context.Context, _ func(context.Context, ...abi.Key)) error {
	tick := time.NewTicker(interruptEvery)
	defer tick.Stop()
	for {
		for of, b := range i.server.busy(i.kind) {
			if ctx.Err() != nil || i.server.outdated(of, b.object) {
				b.interrupt(errOutdated)
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// String implements wasmctl.Source.
func (interrupts) String() string { return "of nothing: it interrupts looks at outdated states" }

// busy returns the looks that may take long, by object.
func (s *Server) busy(kind string) map[id]*busy {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[id]*busy{}
	for of, u := range s.units {
		u.mu.Lock()
		if of.kind == kind && u.busy != nil {
			all[of] = u.busy
		}
		u.mu.Unlock()
	}
	return all
}

// outdated reports whether the object in the cache wants something else than a state of it.
func (s *Server) outdated(of id, state *reconciler) bool {
	s.mu.Lock()
	c := s.natives[of.kind]
	s.mu.Unlock()
	if c == nil {
		return false // it starts
	}
	now, err := c.Store().Get(of.Key)
	if err != nil {
		return false
	}
	if now == nil || now.GetUID() != state.meta.UID || (now.GetDeletionTimestamp() == nil) != (state.meta.DeletionTimestamp == nil) {
		return true
	}
	if now.GetGeneration() == state.meta.Generation {
		return false
	}
	o, err := read(of.kind, func(into any) error { return runtime.DefaultUnstructuredConverter.FromUnstructured(now.Object, into) })
	return err != nil || o.spec.Suspend != state.spec.Suspend || !reflect.DeepEqual(o.spec.Module, state.spec.Module)
}
