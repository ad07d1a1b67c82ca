package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
)

// minCalls is how many calls an instance makes at least before it is replaced
// because of its memory: a module that needs so much each time is not started
// again for each run.
const minCalls = 16

// worn names the limit because of which to replace the instance, or is "".
// Memory of WebAssembly never shrinks: what one large object took stays taken,
// and what leaks grows.
func (in *instance) worn() abi.LimitName {
	l := &in.gen.limits
	switch {
	case in.entered >= l.InstanceCalls:
		return abi.LimitInstanceCalls
	case in.entered >= minCalls && in.size() > l.HighWater:
		return abi.LimitHighWater
	}
	return ""
}

// recycledBy is the reason of an instance that did not survive a call.
func recycledBy(err error) string {
	if call, ok := errors.AsType[*abi.CallError](err); ok {
		return string(call.Kind)
	}
	return "interrupted"
}

// Recycled returns how many instances were replaced since the module was loaded,
// by reason: trap, timeout, memory, output, interrupted (by a stop or a swap),
// instance_calls, high_water. Reasons that there were not are left out.
func (m *Module) Recycled() map[string]uint64 { return m.shared.recycled.all() }

// unhealthyAfter is how many instances in a row cannot be made before a module
// counts as unhealthy.
const unhealthyAfter = 3

// health is whether instances of a revision can be made.
type health struct {
	mu     sync.Mutex
	failed int   // in a row; guarded by mu
	last   error // of the last that failed; guarded by mu
}

// note notes the making of an instance. A canceled attempt does not count.
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

// Healthy returns nil while instances of the live revision can be made. After
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
	return fmt.Errorf("module[%s]: revision %d cannot be instantiated, %d times in a row: %w", m.name, g.number, h.failed, h.last)
}
