// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// MinResync is the shortest period of a Resync.
const MinResync = time.Second

// resyncJitter is the fraction by which the period varies in both directions, as with controller-runtime's SyncPeriod, so that controllers
// that were started together do not stay synchronized.
const resyncJitter = 0.1

// resync requests all objects, without urgency (rule 4).
var resync = Trigger{All: true, Reason: abi.Reason{Type: abi.ReasonResync}, Low: true}

// Resync requests all objects at low priority, periodically. It does not list from the API server, because watches keep the store current:
// a resync is for changes outside the cluster, which watches cannot see.
type Resync struct{ period time.Duration }

// NewResync returns a Resync with a period of at least MinResync, which varies by 10 percent in both directions.
func NewResync(period time.Duration) (Resync, error) {
	if period < MinResync {
		return Resync{}, fmt.Errorf("resync[%v]: the period must be %v or more", period, MinResync)
	}
	return Resync{period}, nil
}

// Run implements Source. The first trigger comes one period after the start, because all objects are listed at the start anyway.
func (r Resync) Run(ctx context.Context, emit Emit) error {
	for {
		jitter := (2*rand.Float64() - 1) * resyncJitter
		if !sleep(ctx, time.Duration(float64(r.period)*(1+jitter))) {
			return nil
		}
		emit(ctx, resync)
	}
}

// String implements Source.
func (r Resync) String() string { return "resync every " + r.period.String() }

// sleep waits for d. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
