// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/webhook"
)

// judge serves the webhooks of a controller from its first start until its end. A restart loads the
// module again: until then, requests wait, and the webhooks stay registered. It implements
// webhook.Backend.
type judge struct {
	controller *Controller
	last       atomic.Pointer[webhook.Routes]
	remove     func()
}

// newJudge serves the webhooks of a controller that starts with its first engine. The caller holds c.mu.
func newJudge(c *Controller, e *engine.Controller) *judge {
	j := &judge{controller: c}
	j.last.Store(e.Webhooks().Routes())
	j.remove = c.rt.hooks.server.Add(c.name, c.options.WebhookPrefix, j, share.NewAccount(c.rt.shared.Budget, cmp.Or(c.options.Tenant, share.OwnTenant(c.name)), share.Reviews))
	return j
}

// unserve ends the webhooks of the controller.
func (c *Controller) unserve() {
	c.mu.Lock()
	j := c.judge
	c.judge = nil
	c.mu.Unlock()
	if j != nil {
		j.remove()
	}
}

// Routes implements webhook.Backend. While the controller restarts, they are those from before.
func (j *judge) Routes() *webhook.Routes {
	if e := j.controller.life.View().Engine; e != nil {
		j.last.Store(e.Webhooks().Routes())
	}
	return j.last.Load()
}

// Admit implements webhook.Backend.
func (j *judge) Admit(ctx context.Context, w *abi.Webhook, a *abi.Admission) (res abi.AdmissionResult, err error) {
	err = j.ask(ctx, func(b webhook.Backend) error {
		res, err = b.Admit(ctx, w, a)
		return err
	})
	return res, err
}

// Convert implements webhook.Backend.
func (j *judge) Convert(ctx context.Context, c *abi.Conversion) (objects [][]byte, err error) {
	err = j.ask(ctx, func(b webhook.Backend) error {
		objects, err = b.Convert(ctx, c)
		return err
	})
	return objects, err
}

// restartPoll is how often a request looks whether the controller runs again.
const restartPoll = 10 * time.Millisecond

// ask has the running engine answer, or the next one if that one has ended.
func (j *judge) ask(ctx context.Context, do func(webhook.Backend) error) error {
	var asked *engine.Controller
	for {
		v := j.controller.life.View()
		switch e := v.Engine; {
		case e != nil && e != asked:
			asked = e
			if err := do(e.Webhooks()); err == nil || !errors.Is(err, host.ErrClosed) {
				return err
			}
		case e == nil && v.Phase != admin.PhaseLoading: // this may take long
			return fmt.Errorf("controller[%s]: does not run: %s", j.controller.Name(), v.Message)
		}
		select {
		case <-time.After(restartPoll):
		case <-ctx.Done():
			return fmt.Errorf("controller[%s]: is starting: %w", j.controller.Name(), context.Cause(ctx))
		}
	}
}
