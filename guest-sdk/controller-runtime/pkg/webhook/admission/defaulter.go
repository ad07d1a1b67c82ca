// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// DefaulterOption changes how a defaulter is called.
type DefaulterOption func(*defaulterOptions)

type defaulterOptions struct{ removesUnknown bool }

// DefaulterRemoveUnknownOrOmitableFields removes fields that the Go type does
// not know, and fields with a zero value that it omits.
func DefaulterRemoveUnknownOrOmitableFields(o *defaulterOptions) { o.removesUnknown = true }

// defaulting is the handler of a defaulter.
type defaulting struct {
	defaulterOptions

	fresh func() runtime.Object
	set   func(ctx context.Context, obj runtime.Object) error
}

func newDefaulting(fresh func() runtime.Object, set func(context.Context, runtime.Object) error, opts []DefaulterOption) *Webhook {
	d := &defaulting{fresh: fresh, set: set}
	for _, opt := range opts {
		opt(&d.defaulterOptions)
	}
	return &Webhook{Handler: d}
}

// Handle implements Handler.
func (d *defaulting) Handle(ctx context.Context, req Request) Response {
	if req.Operation == admissionv1.Delete {
		return Allowed("")
	}
	obj := d.fresh()
	if err := (decoder{}).Decode(req, obj); err != nil {
		return Errored(http.StatusBadRequest, err)
	}
	original := obj.DeepCopyObject()
	if err := d.set(NewContextWithRequest(ctx, req), obj); err != nil {
		return refused(err)
	}
	if !d.removesUnknown && reflect.DeepEqual(original, obj) {
		return Allowed("")
	}
	res := patched(req.Object.Raw, obj)
	if d.removesUnknown || !slices.ContainsFunc(res.Patches, removes) {
		return res
	}
	// The type may lack fields of the object. Their removal is not a change
	// that the program made.
	lost := patched(req.Object.Raw, original)
	res.Patches = slices.DeleteFunc(res.Patches, func(op jsonpatch.JsonPatchOperation) bool {
		return removes(op) && slices.ContainsFunc(lost.Patches, func(l jsonpatch.JsonPatchOperation) bool { return removes(l) && l.Path == op.Path })
	})
	if len(res.Patches) == 0 {
		res.PatchType = nil
	}
	return res
}

func removes(op jsonpatch.JsonPatchOperation) bool { return op.Operation == "remove" }

// patched returns the response with the patch that turns raw into obj.
func patched(raw []byte, obj runtime.Object) Response {
	text, err := json.Marshal(obj)
	if err != nil {
		return Errored(http.StatusInternalServerError, err)
	}
	return PatchResponseFromRaw(raw, text)
}

// refused returns the response for an error of the program. An error with a
// status keeps it.
func refused(err error) Response {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Denied(err.Error())
	}
	s := status.Status()
	return Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &s}}
}

// freshOf returns a function that makes empty objects of a type.
func freshOf[T runtime.Object]() func() runtime.Object {
	of := reflect.TypeFor[T]().Elem()
	return func() runtime.Object { return reflect.New(of).Interface().(T) } //nolint:forcetypeassert // of is T's element
}

// copyOf returns a function that copies an object.
func copyOf(obj runtime.Object) func() runtime.Object {
	return func() runtime.Object { return obj.DeepCopyObject() }
}
