// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
	"github.com/wasmctl/wasmctl/runtime/controller"
)

// restless is a module whose runs ask for the next one almost at once.
type restless struct {
	*finalizing

	after time.Duration
	fails bool
	steps int // after this many runs it asks for nothing; 0 means never
}

func (r *restless) Acquire(context.Context) (abi.Guest, func(), error) { return r, func() {}, nil }

func (r *restless) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	_, _ = r.finalizing.Reconcile(ctx, req) // it counts the run
	switch {
	case r.fails:
		return abi.Result{}, errors.New("planned")
	case r.steps > 0 && len(r.runs()) >= r.steps:
		return abi.Result{}, nil
	}
	return abi.Result{Action: abi.Action{Requeue: true, After: r.after}}, nil
}

func (r *restless) ErrorPolicy(context.Context, *abi.Failure) (abi.Result, error) {
	return abi.Result{Action: abi.Action{Requeue: true, After: r.after}}, nil
}

// An object whose runs ask for the next one at once, for example because the time that they wait for is in the past, costs less than a few
// runs a second, whether they succeed or fail. A change by another client is not delayed.
func TestRequeue_AtOnceWithoutEndIsSlowed(t *testing.T) {
	for name, r := range map[string]*restless{
		"in the past": {after: -5 * time.Second}, "at once": {}, "after a millisecond": {after: time.Millisecond}, "an error_policy": {fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r.finalizing = &finalizing{}
				c := startFinalizing(t, r.finalizing, func(cfg *controller.Config) { cfg.Module, cfg.Finalizer = r, "" })
				r.set(1)
				r.settle(time.Second)
				if n := len(r.runs()); n < 10 || n > 25 {
					t.Errorf("%d runs in the first second", n)
				}
				before := len(r.runs())
				r.settle(5 * time.Second)
				if n := len(r.runs()) - before; n > 10 {
					t.Errorf("%d runs in the 5 s after it", n)
				}
				r.settle(10 * time.Minute)
				cause := guard.CauseRequeue
				if r.fails {
					cause = guard.CauseRetry
				}
				if hot := c.Hot(10); len(hot) != 1 || hot[0].Key != widget || hot[0].Cause != cause {
					t.Errorf("in hot loops: %+v", hot)
				}
				r.set(2)
				r.settle(100 * time.Millisecond)
				if saw := r.runs(); saw[len(saw)-1] != 2 {
					t.Errorf("a change by another client waits: runs saw %v", saw)
				}
			})
		})
	}
}

// A sequence of ten steps takes no time.
func TestRequeue_TenStepsAreNotSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &restless{finalizing: &finalizing{}, steps: 11}
		c := startFinalizing(t, r.finalizing, func(cfg *controller.Config) { cfg.Module, cfg.Finalizer = r, "" })
		r.set(1)
		r.settle(20 * time.Millisecond)
		if n := len(r.runs()); n != 11 || len(c.Hot(10)) > 0 {
			t.Errorf("%d runs, in hot loops: %+v", n, c.Hot(10))
		}
	})
}
