package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
)

// minCalls is how many calls an instance makes at least before it is replaced
// because of its memory: a module that needs so much each time is not started
// anew for each run.
const minCalls = 16

// worn says by which limit the instance is to be replaced, or is "". Memory of
// WebAssembly never shrinks: what one large object took stays taken, and what
// leaks grows.
func (in *instance) worn() abi.LimitName {
	l := &in.gen.limits
	switch {
	case in.entered >= l.InstanceCalls:
		return abi.LimitInstanceCalls
	case in.entered >= minCalls && int64(in.memory.Size()) > l.HighWater:
		return abi.LimitHighWater
	}
	return ""
}

// recycleReason says why an instance was replaced: a kind of failure, or a limit
// of worn.
type recycleReason string

// recycleReasons are those that are counted, in the order of recycled.
var recycleReasons = []recycleReason{
	recycleReason(abi.FailureTrap), recycleReason(abi.FailureTimeout), recycleReason(abi.FailureMemory), recycleReason(abi.FailureOutput),
	"interrupted", recycleReason(abi.LimitInstanceCalls), recycleReason(abi.LimitHighWater),
}

// recycled counts instances that were replaced.
type recycled struct{ counts [8]atomic.Uint64 }

func (r *recycled) add(why recycleReason) {
	if i := slices.Index(recycleReasons, why); i >= 0 {
		r.counts[i].Add(1)
	}
}

// recycledBy is the reason of an instance that did not survive a call.
func recycledBy(err error) recycleReason {
	if call, ok := errors.AsType[*abi.CallError](err); ok {
		return recycleReason(call.Kind)
	}
	return "interrupted"
}

// Recycled returns how many instances were replaced since the module was loaded,
// by reason: trap, timeout, memory, output, interrupted (by a stop or a swap),
// instance_calls, high_water. Reasons that there were not are left out.
func (m *Module) Recycled() map[string]uint64 {
	out := map[string]uint64{}
	for i, why := range recycleReasons {
		if n := m.shared.recycled.counts[i].Load(); n > 0 {
			out[string(why)] = n
		}
	}
	return out
}

// unhealthyAfter is how many instances in a row cannot be made before a module
// counts as unhealthy.
const unhealthyAfter = 3

// health is whether instances of a generation can be made.
type health struct {
	mu     sync.Mutex
	failed int   // in a row; guarded by mu
	last   error // of the last that failed; guarded by mu
}

// note notes the making of an instance. One that was given up says nothing.
func (h *health) note(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last = err; err == nil {
		h.failed = 0
		return
	}
	h.failed++
}

// Healthy returns nil while instances of the live generation can be made. After
// three in a row that could not it is why not: the start code or configure fails,
// or there is no memory. Runs that find an idle instance go on meanwhile. It is
// nil again after the next that could be made.
func (m *Module) Healthy() error {
	g := m.last.Load()
	h := &g.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed < unhealthyAfter {
		return nil
	}
	return fmt.Errorf("module[%s]: generation %d cannot be instantiated, %d times in a row: %w", m.name, g.number, h.failed, h.last)
}
