// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"sync"
	"time"
)

// turns bounds the number of modules that are loaded at a time. While it is being loaded, a
// large module takes several times the memory that it needs afterwards.
type turns chan struct{}

const (
	minTurns, maxTurns = 2, 4
	// maxTurn is the maximum time for which one module can delay others, even if loading it
	// hangs.
	maxTurn = time.Minute
)

// newTurns returns one turn per CPU, within bounds.
func newTurns(cpus int) turns { return make(turns, max(minTurns, min(cpus, maxTurns))) }

// take waits for a turn. The turn ends with the first call of end, or after maxTurn.
func (t turns) take(ctx context.Context) (end func(), err error) {
	select {
	case t <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	give := sync.OnceFunc(func() { <-t })
	late := time.AfterFunc(maxTurn, give)
	return func() {
		late.Stop()
		give()
	}, nil
}
