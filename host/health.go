// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"sync"
)

// unhealthyAfter is how many instances in a row must fail to start before a module counts as
// unhealthy.
const unhealthyAfter = 3

// health is whether instances of a revision can be made.
type health struct {
	mu     sync.Mutex
	failed int   // in a row; guarded by mu
	last   error // of the last that failed; guarded by mu
}

// note records the result of making an instance. A canceled attempt does not count.
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

// Healthy returns nil while instances of the live revision can be made. After three failures
// in a row, it returns the reason: the start code or configure fails, or there is no memory.
// Runs that find an idle instance continue meanwhile. It returns nil again after the next
// instance that could be made.
func (m *Module) Healthy() error {
	rev := m.last.Load()
	h := &rev.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed < unhealthyAfter {
		return nil
	}
	return fmt.Errorf("module[%s]: revision %d cannot be instantiated, %d times in a row: %w", m.name, rev.spec.Number, h.failed, h.last)
}
