// SPDX-License-Identifier: Apache-2.0

package declare

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
	"sigs.k8s.io/controller-runtime/pkg/internal/run"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The back-off of Result.Requeue, with the values of the real workqueue.
const (
	firstRequeue = 5 * time.Millisecond
	lastRequeue  = 1000 * time.Second
)

// runner runs the reconciler of a controller.
type runner struct {
	c *Controller
	// again counts the consecutive runs that requested another one immediately.
	// Each instance has its own counts.
	again map[types.NamespacedName]int
}

func newRunner(c *Controller) *runner {
	return &runner{c: c, again: map[types.NamespacedName]int{}}
}

// reconcile handles a run of the host.
func (r *runner) reconcile(c *wasmctl.Context, obj wasmctl.Object) (wasmctl.Action, error) {
	req := reconcile.Request{NamespacedName: types.NamespacedName(c.Key())}
	if obj.Exists() && req.Namespace == "" {
		kinds.LearnClusterScoped(obj.APIVersion(), obj.Kind())
	}
	base := context.Background()
	if r.c.Base != nil {
		base = r.c.Base()
	}
	ctx, leave := run.Enter(base, c)
	defer leave()
	ctx = logf.IntoContext(ctx, r.c.Logger(&req))
	if r.c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.c.Timeout)
		defer cancel()
	}
	result, err := r.c.Reconcile(ctx, req)
	if err != nil {
		delete(r.again, req.NamespacedName)
		return wasmctl.AwaitChange(), classify(err)
	}
	return r.action(req, result), nil
}

// action converts a result to an Action.
func (r *runner) action(req reconcile.Request, result reconcile.Result) wasmctl.Action {
	n := r.again[req.NamespacedName]
	delete(r.again, req.NamespacedName)
	switch {
	case result.RequeueAfter > 0:
		return wasmctl.Requeue(result.RequeueAfter)
	case result.Requeue: //nolint:staticcheck // programs still use it
		r.again[req.NamespacedName] = n + 1
		return wasmctl.Requeue(backOff(n))
	}
	return wasmctl.AwaitChange()
}

// backOff returns the delay after n consecutive runs that requested another
// one.
func backOff(n int) time.Duration {
	d := firstRequeue
	for range n {
		if d *= 2; d >= lastRequeue {
			return lastRequeue
		}
	}
	return d
}

// classify marks an error for the host.
func classify(err error) error {
	reason := string(apierrors.ReasonForError(err))
	switch {
	case errors.Is(err, reconcile.TerminalError(nil)):
		err = wasmctl.Permanent(err)
	case apierrors.IsConflict(err):
		err = wasmctl.Conflict(err)
	default:
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
			err = wasmctl.RetryAfter(err, time.Duration(seconds)*time.Second)
		}
	}
	if reason == "" {
		return err
	}
	return wasmctl.WithReason(err, reason)
}
