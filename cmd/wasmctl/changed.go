package main

import (
	"context"
	"slices"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// reconcileWhere has the objects reconciled that a swap is about, at low
// priority, and returns how many. With --reconcile-on-swap=none there are none.
func (s *session) reconcileWhere(ctx context.Context, wanted func(*reflector.Object) bool) int {
	if s.opts.reconcileOnSwap == reconcileNone {
		return 0
	}
	return s.controller.TriggerWhere(ctx, abi.ReasonModuleSwapped, wanted)
}

// lastGood knows, for --reconcile-on-swap=changed, which generation was the last
// to reconcile each object with success. An object is in doubt without one: its
// last run failed or was interrupted, or was of a generation that was taken back.
// The zero value keeps nothing.
type lastGood struct {
	on bool // set before the first run

	mu    sync.Mutex
	byKey map[abi.Key]uint64 // guarded by mu
}

// end notes a run that has ended.
func (l *lastGood) end(out *applier.Outcome) {
	if !l.on || out.Generation == 0 && out.Err == nil {
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
	l.byKey[out.Key] = out.Generation
}

// distrust says that what a generation did does not count.
func (l *lastGood) distrust(generation uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, number := range l.byKey {
		if number == generation {
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

// sameInputs reports whether runs under both plans see the same: the watches
// that lead to them, and the children that are theirs.
func sameInputs(a, b *plan) bool { return slices.Equal(a.inputs(), b.inputs()) }

func (p *plan) inputs() []string {
	var ids []string
	for _, k := range slices.Concat(p.related, p.late) {
		ids = append(ids, k.id())
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// settingsNumber is the number of the settings in force.
func (s *session) settingsNumber() int64 {
	_, gen := s.module.Settings()
	return gen
}
