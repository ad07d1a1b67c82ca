// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/host/share"
)

// turns bounds the number of modules that are loaded at a time, fairly by tenant. While it is
// being loaded, a large module takes several times the memory that it needs afterwards.
type turns struct{ *share.Turns }

const (
	minTurns, maxTurns = 2, 4
	// maxTurn is the maximum time for which one module can delay others, even if loading it
	// hangs.
	maxTurn = time.Minute
)

// newTurns returns one turn per CPU, within bounds.
func newTurns(cpus int) turns {
	n := max(minTurns, min(cpus, maxTurns))
	return turns{share.NewTurns(n, n)}
}

// take waits for a turn. The turn ends with the first call of end, or after maxTurn.
func (t turns) take(ctx context.Context, tenant string) (end func(), err error) {
	if err := t.Take(ctx, tenant); err != nil {
		return nil, err
	}
	startedAt := time.Now()
	give := sync.OnceFunc(func() { t.End(tenant, 1, time.Since(startedAt)) })
	late := time.AfterFunc(maxTurn, give)
	return func() {
		late.Stop()
		give()
	}, nil
}
