package host

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// instanceRate bounds how many instances the runs of a module need in a second.
// Making one is work and garbage of the host that the module's fuel does not
// count, and a guest that traps in each run needs one each time.
type instanceRate struct {
	mu     sync.Mutex
	bucket bucket // guarded by mu
}

// reserve takes the place of one instance and returns how long to wait for it;
// where that is longer than most it takes none and returns false.
func (r *instanceRate) reserve(now time.Time, perSecond int64, most time.Duration) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := r.bucket.charge(now, perSecond, 1)
	if wait > most {
		r.bucket.used--
		return 0, false
	}
	return wait, true
}

// giveBack returns a place that was not used.
func (r *instanceRate) giveBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bucket.used = max(0, r.bucket.used-1)
}

// another makes an instance for a run, once the module's rate allows it.
func (g *generation) another(ctx context.Context, s *settings) (*instance, error) {
	if err := g.awaitPlace(ctx); err != nil {
		return nil, err
	}
	return g.newInstance(ctx, s)
}

// awaitPlace waits until one more instance may be made. The time is that of the
// call which needs it: where that is too short the error comes at once.
func (g *generation) awaitPlace(ctx context.Context) error {
	most := g.limits.Timeout
	if d, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(d))
	}
	rate := &g.shared.fresh
	wait, ok := rate.reserve(time.Now(), g.limits.InstanceRate, most)
	if !ok {
		return g.limitError(abi.LimitInstanceRate, "needs a fresh instance too often, and this run cannot wait for one", nil)
	}
	if wait <= 0 {
		return nil
	}
	g.shared.hits.add(abi.LimitInstanceRate)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		rate.giveBack()
		return fmt.Errorf("waiting for a fresh instance: %w", context.Cause(ctx))
	case <-g.replaced:
		rate.giveBack()
		return errReplaced(g.number)
	}
}
