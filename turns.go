package wasmctl

import (
	"context"
	"sync"
	"time"
)

// turns bounds how many modules are loaded at a time. Until it is loaded, a large one
// takes several times the memory that it needs afterwards.
type turns chan struct{}

const (
	minTurns, maxTurns = 2, 4
	// maxTurn is how long others wait at most, whatever is wrong with a module.
	maxTurn = time.Minute
)

// newTurns returns as many turns as there are CPUs, within bounds.
func newTurns(cpus int) turns { return make(turns, max(minTurns, min(cpus, maxTurns))) }

// take waits for a turn. It ends with the first call of end, or after a while.
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
