// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/webhook"
)

// backend judges requests by the module of a controller. It implements webhook.Backend.
type backend struct {
	*Controller

	synced atomic.Bool // the caches have been complete once
}

// Webhooks returns the webhooks of a controller that was started; nil for a native reconciler.
func (c *Controller) Webhooks() webhook.Backend {
	if c.judges == nil {
		return nil
	}
	return c.judges
}

// syncPoll is how often a request that waits for the cache looks at it.
const syncPoll = 20 * time.Millisecond

// noRoutes are the routes of a controller that serves no webhooks.
var noRoutes webhook.Routes

// Routes implements webhook.Backend. A dry run judges no requests, because a denial would change what
// happens in the cluster.
func (b *backend) Routes() *webhook.Routes {
	if b.opts.dryRun() != kubeapi.DryRunNone {
		return &noRoutes
	}
	return b.rollout.Routes()
}

// Admit implements webhook.Backend.
func (b *backend) Admit(ctx context.Context, w *abi.Webhook, a *abi.Admission) (abi.AdmissionResult, error) {
	a.Controller = b.name
	for err := b.unsynced(); err != nil; err = b.unsynced() {
		select {
		case <-time.After(syncPoll):
		case <-ctx.Done():
			return abi.AdmissionResult{}, err
		}
	}
	started := time.Now()
	res, revision, err := b.rollout.Admit(ctx, w, a)
	b.Telemetry.Admitted(a, &res, revision, started, err)
	if err == nil {
		b.recorder.Admitted(w, a, res)
	}
	return res, err
}

// Convert implements webhook.Backend.
func (b *backend) Convert(ctx context.Context, c *abi.Conversion) ([][]byte, error) {
	c.Controller = b.name
	objects, _, err := b.rollout.Convert(ctx, c)
	return objects, err
}

// unsynced returns an error if the module can read the cache and the cache was never complete. A verdict
// on a part of the objects would be wrong.
func (b *backend) unsynced() error {
	info := b.Module.Info()
	if b.synced.Load() || !info.CanCall(abi.OpCacheGet) && !info.CanCall(abi.OpCacheList) {
		return nil
	}
	if missing := b.Runtime.Unsynced(); len(missing) > 0 {
		return fmt.Errorf("controller[%s]: the cache is not complete yet: %s", b.name, strings.Join(missing, "; "))
	}
	b.synced.Store(true)
	return nil
}
