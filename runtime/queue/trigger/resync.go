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

// resyncJitter is the part of the period by which it varies to both sides, as
// controller-runtime's SyncPeriod does: what was started together does not stay
// together.
const resyncJitter = 0.1

// resync is what a period and a schedule ask for: all objects, with no hurry
// (rule 4).
var resync = Trigger{All: true, Reason: abi.Reason{Type: abi.ReasonResync}, Low: true}

// Resync asks for all objects at low priority, again and again. It lists nothing
// from the API server: watches keep the store true; a resync is for what they
// cannot see, outside the cluster.
type Resync struct{ period time.Duration }

// NewResync returns a Resync with a period of at least MinResync, which varies
// by a tenth to both sides.
func NewResync(period time.Duration) (Resync, error) {
	if period < MinResync {
		return Resync{}, fmt.Errorf("resync[%v]: the period must be %v or more", period, MinResync)
	}
	return Resync{period}, nil
}

// Run implements Source. The first is one period after the start: all objects
// are listed then anyway.
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

// sleep waits for d; false says that ctx ended first.
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
