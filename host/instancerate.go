// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
)

// another makes an instance for a run, once the module's rate allows it. To make one is work
// and garbage of the host that the module's fuel does not count, and a guest that traps in
// each run needs one each time.
func (r *revision) another(ctx context.Context, s *operation.Settings) (*instance.Instance, error) {
	if err := r.awaitPlace(ctx); err != nil {
		return nil, err
	}
	return r.newInstance(ctx, s)
}

// awaitPlace waits until one more instance may be made. It uses the time of the call that
// needs the instance: if that is too short, it returns the error at once.
func (r *revision) awaitPlace(ctx context.Context) error {
	most := r.spec.Limits.Timeout
	if d, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(d))
	}
	rate := &r.shared.use.Fresh
	wait, ok := rate.Reserve(time.Now(), share.InstanceRate, 1, most)
	if !ok {
		return r.spec.LimitError(abi.LimitInstanceRate, "too many fresh instances, and this run has no time to wait for one", nil)
	}
	if wait <= 0 {
		return nil
	}
	r.shared.use.Hits.Add(abi.LimitInstanceRate)
	timer, startedAt := time.NewTimer(wait), time.Now()
	defer timer.Stop()
	defer func() { abi.RunFrom(ctx).Idled(time.Since(startedAt)) }()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		rate.GiveBack(1)
		return fmt.Errorf("waiting for a fresh instance: %w", context.Cause(ctx))
	case <-r.spec.All.Over():
		rate.GiveBack(1)
		return instance.ErrReplaced(r.spec.Number)
	}
}
