package declare

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
	"sigs.k8s.io/controller-runtime/pkg/internal/run"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The back-off of Result.Requeue, as the real workqueue has it.
const (
	firstRequeue = 5 * time.Millisecond
	lastRequeue  = 1000 * time.Second
)

// runner carries out the runs of a controller.
type runner struct {
	c *Controller
	// again counts the runs in a row that asked for another one at once. Each
	// instance counts for itself.
	again map[types.NamespacedName]int
}

func newRunner(c *Controller) *runner {
	return &runner{c: c, again: map[types.NamespacedName]int{}}
}

// moreGarbage lets the runs of an operator leave more garbage than Go's default of 100 %:
// an operator has some megabytes in use, and to look at them takes as long as several
// runs. It is for the first run, as the garbage of main would be in all instances.
var moreGarbage = sync.OnceFunc(func() { debug.SetGCPercent(200) })

// reconcile is a run of the host.
func (r *runner) reconcile(c *wasmctl.Context, obj wasmctl.Object) (wasmctl.Action, error) {
	moreGarbage()
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

// action is what a result asks for.
func (r *runner) action(req reconcile.Request, result reconcile.Result) wasmctl.Action {
	n := r.again[req.NamespacedName]
	delete(r.again, req.NamespacedName)
	switch {
	case result.RequeueAfter > 0:
		return wasmctl.Requeue(result.RequeueAfter)
	case result.Requeue: //nolint:staticcheck // programs use it
		r.again[req.NamespacedName] = n + 1
		return wasmctl.Requeue(backOff(n))
	}
	return wasmctl.AwaitChange()
}

// backOff is the wait after n runs that asked for another one before.
func backOff(n int) time.Duration {
	d := firstRequeue
	for range n {
		if d *= 2; d >= lastRequeue {
			return lastRequeue
		}
	}
	return d
}

// classify marks what the host is to know of an error.
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
