// SPDX-License-Identifier: Apache-2.0

// Package adapter runs reconcilers of controller-runtime as native reconcilers of wasmctl, next
// to modules: on the same watches, queue, workers and metrics.
//
//	n := adapter.Native("memcached", abi.Watch{Group: "cache.example.com", Version: "v1", Kind: "Memcached"}, &MemcachedReconciler{Client: c})
//	n.Owns = []abi.Watch{{Group: "apps", Version: "v1", Kind: "Deployment", ControllerOnly: true}}
//	controller, err := rt.Add(ctx, n, wasmctl.ControllerOptions{})
//
// So a program can move its controllers to wasmctl one at a time, without a Manager.
package adapter

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
)

// requeueAfter is the delay for the deprecated Result.Requeue, which names none.
const requeueAfter = time.Second

// Native returns the native reconciler of the objects of a kind that calls r. The other fields
// of the result, such as Owns and Watches, are the caller's to set.
//
// As in controller-runtime, r is also called after an object was deleted, and while it is being
// deleted, if a finalizer keeps it. The error of reconcile.TerminalError waits for a change of
// the object; other errors are retried with the host's back-off. Result.Priority has no effect.
// The reconciler uses its own client; wasmctl waits for its own writes only.
func Native(name string, of abi.Watch, r reconcile.Reconciler) wasmctl.Native {
	of.Deletes = true
	return wasmctl.Native{
		Name: name, For: of,
		Reconcile: func(ctx context.Context, req *wasmctl.Request) (wasmctl.Action, error) {
			key := types.NamespacedName{Namespace: req.Key.Namespace, Name: req.Key.Name}
			result, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
			return action(result), failure(err)
		},
	}
}

// action returns what follows a run without an error.
func action(r reconcile.Result) wasmctl.Action {
	switch {
	case r.RequeueAfter > 0:
		return wasmctl.Action{Requeue: true, After: r.RequeueAfter}
	case r.Requeue: //nolint:staticcheck // reconcilers use it although it is deprecated
		return wasmctl.Action{Requeue: true, After: requeueAfter}
	}
	return wasmctl.Action{}
}

// failure returns the error of a run for the host.
func failure(err error) error {
	if errors.Is(err, reconcile.TerminalError(nil)) {
		return terminalError{err}
	}
	return err
}

// terminalError is an error that is not retried.
type terminalError struct{ error }

// Unwrap returns the error itself, and the class that the host looks for.
func (e terminalError) Unwrap() []error {
	return []error{e.error, &abi.ResultError{Class: abi.ErrorPermanent, Message: e.Error()}}
}
