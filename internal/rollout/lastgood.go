// SPDX-License-Identifier: Apache-2.0

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

// reconcileWhere triggers the selected objects at low priority, and returns their number.
// With ReconcileNone it triggers none.
func (r *Rollout) reconcileWhere(ctx context.Context, wanted func(*reflector.Object) bool) int {
	if r.Options.Reconcile == v1alpha1.ReconcileNone {
		return 0
	}
	return r.controller.TriggerWhere(ctx, abi.ReasonModuleSwapped, wanted)
}

// lastGood records, for ReconcileChanged, the revision of the last run of each object if
// that run succeeded. An object without a record is in doubt: its last run failed, was
// interrupted, or belonged to a revision that was rolled back. The zero value records
// nothing.
type lastGood struct {
	on bool // set before the first run

	mu    sync.Mutex
	byKey map[abi.Key]uint64 // guarded by mu
}

// end records a run that has ended.
func (l *lastGood) end(out *applier.Outcome) {
	if !l.on || out.Revision == 0 && out.Err == nil || errors.Is(out.Err, applier.ErrUnchanged) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if out.Err != nil { // also if the object is gone
		delete(l.byKey, out.Key)
		return
	}
	if l.byKey == nil {
		l.byKey = map[abi.Key]uint64{}
	}
	l.byKey[out.Key] = out.Revision
}

// distrust puts the objects in doubt that a revision has reconciled last.
func (l *lastGood) distrust(revision uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, number := range l.byKey {
		if number == revision {
			delete(l.byKey, key)
		}
	}
}

// inDoubt reports whether an object is in doubt.
func (l *lastGood) inDoubt(o *reflector.Object) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.byKey[o.Ref()]
	return !ok
}
