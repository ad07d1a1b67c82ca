package host

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// another makes an instance for a run, once the module's rate allows it. Making
// one is work and garbage of the host that the module's fuel does not count, and
// a guest that traps in each run needs one each time.
func (g *revision) another(ctx context.Context, s *settings) (*instance, error) {
	if err := g.awaitPlace(ctx); err != nil {
		return nil, err
	}
	return g.newInstance(ctx, s)
}

// awaitPlace waits until one more instance may be made. The time is that of the
// call which needs it: where that is too short the error comes at once.
func (g *revision) awaitPlace(ctx context.Context) error {
	most := g.limits.Timeout
	if d, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(d))
	}
	rate := &g.shared.fresh
	wait, ok := rate.reserve(time.Now(), g.limits.InstanceRate, 1, most)
	if !ok {
		return g.limitError(abi.LimitInstanceRate, "too many fresh instances, and this run has no time to wait for one", nil)
	}
	if wait <= 0 {
		return nil
	}
	g.shared.hits.add(abi.LimitInstanceRate)
	timer, startedAt := time.NewTimer(wait), time.Now()
	defer timer.Stop()
	defer func() { abi.RunFrom(ctx).Idled(time.Since(startedAt)) }()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		rate.giveBack(1)
		return fmt.Errorf("waiting for a fresh instance: %w", context.Cause(ctx))
	case <-g.replaced:
		rate.giveBack(1)
		return errReplaced(g.number)
	}
}
