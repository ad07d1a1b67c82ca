package rollout

import (
	"context"
	"errors"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// reconcileWhere has the objects reconciled that a swap is about, at low
// priority, and returns how many. With ReconcileNone there are none.
func (r *Rollout) reconcileWhere(ctx context.Context, wanted func(*reflector.Object) bool) int {
	if r.Options.Reconcile == v1alpha1.ReconcileNone {
		return 0
	}
	return r.controller.TriggerWhere(ctx, abi.ReasonModuleSwapped, wanted)
}

// lastGood knows, for ReconcileChanged, which revision was the last to
// reconcile each object with success. An object is in doubt without one: its last
// run failed or was interrupted, or was of a revision that was rolled back. The
// zero value keeps nothing.
type lastGood struct {
	on bool // set before the first run

	mu    sync.Mutex
	byKey map[abi.Key]uint64 // guarded by mu
}

// end notes a run that has ended.
func (l *lastGood) end(out *applier.Outcome) {
	if !l.on || out.Revision == 0 && out.Err == nil || errors.Is(out.Err, applier.ErrUnchanged) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if out.Err != nil { // an object that is gone, too
		delete(l.byKey, out.Key)
		return
	}
	if l.byKey == nil {
		l.byKey = map[abi.Key]uint64{}
	}
	l.byKey[out.Key] = out.Revision
}

// distrust says that what a revision did does not count.
func (l *lastGood) distrust(revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, number := range l.byKey {
		if number == revision {
			delete(l.byKey, key)
		}
	}
}

// inDoubt reports whether nothing that counts has reconciled the object last.
func (l *lastGood) inDoubt(o *reflector.Object) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.byKey[o.Ref()]
	return !ok
}
