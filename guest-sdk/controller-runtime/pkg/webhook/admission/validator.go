// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Warnings are shown to the user who sends the write.
type Warnings []string

// validating is the handler of a validator.
type validating struct {
	fresh func() runtime.Object
	// check is one of the methods of the validator: old is nil for a create,
	// and now is nil for a delete.
	check func(ctx context.Context, old, now runtime.Object) (Warnings, error)
}

// Handle implements Handler.
func (v validating) Handle(ctx context.Context, req Request) Response {
	var old, now runtime.Object
	switch req.Operation {
	case admissionv1.Connect:
		return Allowed("")
	case admissionv1.Create:
		now = v.fresh()
	case admissionv1.Update:
		old, now = v.fresh(), v.fresh()
	case admissionv1.Delete:
		old = v.fresh()
	default:
		return Errored(http.StatusBadRequest, fmt.Errorf("operation %q is not known", req.Operation))
	}
	for _, side := range []struct {
		raw  runtime.RawExtension
		into runtime.Object
	}{{req.Object, now}, {req.OldObject, old}} {
		if side.into == nil {
			continue
		}
		if err := (decoder{}).DecodeRaw(side.raw, side.into); err != nil {
			return Errored(http.StatusBadRequest, err)
		}
	}
	warnings, err := v.check(NewContextWithRequest(ctx, req), old, now)
	res := Allowed("")
	if err != nil {
		res = refused(err)
	}
	return res.WithWarnings(warnings...)
}

// checker returns the check of a validator of a type.
func checker[T runtime.Object](
	create func(context.Context, T) (Warnings, error), update func(ctx context.Context, old, now T) (Warnings, error), remove func(context.Context, T) (Warnings, error),
) func(ctx context.Context, old, now runtime.Object) (Warnings, error) {
	return func(ctx context.Context, old, now runtime.Object) (Warnings, error) {
		was, _ := old.(T)
		is, _ := now.(T)
		switch {
		case old == nil:
			return create(ctx, is)
		case now == nil:
			return remove(ctx, was)
		}
		return update(ctx, was, is)
	}
}
