// SPDX-License-Identifier: Apache-2.0

// Package reconcile has the interface of reconcilers.
package reconcile

import (
	"context"
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Request names the object to reconcile.
type Request struct {
	types.NamespacedName
}

// Result determines what happens after a run without an error.
type Result struct {
	// Requeue asks for another run after a back-off.
	//
	// Deprecated: use RequeueAfter.
	Requeue bool
	// RequeueAfter asks for another run after that time.
	RequeueAfter time.Duration
	// Priority has no effect, because the host has its own priorities.
	Priority *int
}

// IsZero reports whether the result requests no action.
func (r *Result) IsZero() bool { return r == nil || *r == Result{} }

// Reconciler moves the cluster toward the desired state of an object.
type Reconciler = TypedReconciler[Request]

// TypedReconciler is a Reconciler for a type of request.
type TypedReconciler[request comparable] interface {
	// Reconcile is called repeatedly. After an error, the host calls it again
	// after a back-off; see TerminalError.
	Reconcile(ctx context.Context, req request) (Result, error)
}

// Func is a function that is a Reconciler.
type Func = TypedFunc[Request]

// TypedFunc is a function that is a TypedReconciler.
type TypedFunc[request comparable] func(context.Context, request) (Result, error)

// Reconcile implements TypedReconciler.
func (f TypedFunc[request]) Reconcile(ctx context.Context, req request) (Result, error) {
	return f(ctx, req)
}

// ObjectReconciler reconciles objects instead of requests.
type ObjectReconciler[object client.Object] interface {
	// Reconcile is called with the object. It is not called if the object is
	// gone.
	Reconcile(ctx context.Context, obj object) (Result, error)
}

// AsReconciler converts an ObjectReconciler to a Reconciler.
func AsReconciler[object client.Object](c client.Client, rec ObjectReconciler[object]) Reconciler {
	typ := reflect.TypeFor[object]().Elem()
	return Func(func(ctx context.Context, req Request) (Result, error) {
		obj, ok := reflect.New(typ).Interface().(object)
		if !ok {
			return Result{}, errors.New("reconcile: " + typ.String() + " is not a type of objects")
		}
		if err := c.Get(ctx, req.NamespacedName, obj); err != nil {
			return Result{}, client.IgnoreNotFound(err)
		}
		return rec.Reconcile(ctx, obj)
	})
}

// TerminalError marks err as an error that a retry does not fix. The object
// waits for a change.
func TerminalError(err error) error { return &terminalError{err} }

type terminalError struct{ err error }

func (t *terminalError) Unwrap() error { return t.err }

func (t *terminalError) Error() string {
	if t.err == nil {
		return "nil terminal error"
	}
	return "terminal error: " + t.err.Error()
}

// Is makes errors.Is(err, TerminalError(nil)) true for each terminal error.
func (t *terminalError) Is(target error) bool {
	var other *terminalError
	return errors.As(target, &other)
}
