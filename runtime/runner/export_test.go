// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// Running is one running job.
type Running[K comparable, M any] struct {
	scheduler.Item[K, M]
	Since time.Time // when it was started
}

// Running returns the running jobs, the longest-running first. The loop answers within one turn; the error is
// ErrNotRunning, or that of ctx.
func (r *Runner[K, M]) Running(ctx context.Context) ([]Running[K, M], error) {
	return ask(ctx, r, func(l *loop[K, M]) []Running[K, M] {
		var jobs []Running[K, M]
		for _, s := range l.workers.slots {
			if s.busy {
				jobs = append(jobs, Running[K, M]{Item: s.item, Since: s.started})
			}
		}
		slices.SortStableFunc(jobs, func(a, b Running[K, M]) int { return a.Since.Compare(b.Since) })
		return jobs
	})
}

// Resize changes the number of slots. Running jobs are not affected: after a reduction, nothing starts until enough of
// them have ended. The error wraps ErrPoolFull if there are more clients than the new limit; the limit then remains.
func (p *Pool) Resize(limit int) error {
	if err := checkLimit(limit); err != nil {
		return err
	}
	p.mu.Lock()
	if n := len(p.core.clients); limit < n {
		p.mu.Unlock()
		return fmt.Errorf("runner: pool limit %d: %d clients have a slot each: %w", limit, n, ErrPoolFull)
	}
	p.core.limit = limit
	p.grantAndUnlock()
	return nil
}
