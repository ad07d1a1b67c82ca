// SPDX-License-Identifier: Apache-2.0

//go:build !wasmctl_before_023

package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// defaults is a Defaulter.
type defaults func(ctx context.Context, s *corev1.Secret) error

func (f defaults) Default(ctx context.Context, s *corev1.Secret) error { return f(ctx, s) }

// request returns a request to create the object.
func request(object string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "u", Operation: admissionv1.Create, Name: "a", Object: runtime.RawExtension{Raw: []byte(object)},
	}}
}

const given = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","future":{"x":1}},"immutable":false,"future":[1],"type":"x"}`

// TestDefaulter_PatchesOnlyItsOwnChanges: fields that the Go type lacks remain,
// also where the patch has other removals. An unchanged object has no patch.
func TestDefaulter_PatchesOnlyItsOwnChanges(t *testing.T) {
	sets := defaults(func(_ context.Context, s *corev1.Secret) error {
		s.Type, s.Labels = "", map[string]string{"a": "b"}
		return nil
	})
	nothing := defaults(func(context.Context, *corev1.Secret) error { return nil })
	for _, c := range []struct {
		hook *admission.Webhook
		want string
	}{
		{admission.WithDefaulter(nil, sets), `[{"op":"remove","path":"/type"},{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`},
		{admission.WithDefaulter(nil, nothing), `null`},
		{
			admission.WithDefaulter(nil, nothing, admission.DefaulterRemoveUnknownOrOmitableFields),
			`[{"op":"remove","path":"/future"},{"op":"remove","path":"/metadata/future"}]`,
		},
	} {
		res := c.hook.Handle(t.Context(), request(given))
		var got, want []map[string]any
		if res.Patch != nil {
			must(t, json.Unmarshal(res.Patch, &got))
		}
		must(t, json.Unmarshal([]byte(c.want), &want))
		if !res.Allowed || res.UID != "u" || !sameElements(got, want) {
			t.Errorf("patch %s, want %s", res.Patch, c.want)
		}
	}
}

func sameElements(a, b []map[string]any) bool {
	count := func(list []map[string]any) map[string]int {
		m := map[string]int{}
		for _, e := range list {
			m[fmt.Sprint(e)]++
		}
		return m
	}
	return reflect.DeepEqual(count(a), count(b))
}

// TestDefaulter_IsNotCalledForADeletion, and its errors deny the request. An
// error with a status keeps it. The context has the request.
func TestDefaulter_IsNotCalledForADeletion(t *testing.T) {
	var err error
	hook := admission.WithDefaulter(nil, defaults(func(ctx context.Context, s *corev1.Secret) error {
		if req, missing := admission.RequestFromContext(ctx); missing != nil || req.Name != s.Name {
			t.Errorf("the request of the context: %v, %v", req, missing)
		}
		return err
	}))
	for _, c := range []struct {
		err     error
		code    int32
		message string
	}{
		{errors.New("no"), http.StatusForbidden, "no"},
		{fmt.Errorf("x: %w", apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "a", errors.New("y"))), http.StatusConflict, `Operation cannot be fulfilled on secrets "a": y`},
	} {
		err = c.err
		if res := hook.Handle(t.Context(), request(given)); res.Allowed || res.Result.Code != c.code || res.Result.Message != c.message {
			t.Errorf("%+v", res.Result)
		}
	}
	if res := hook.Handle(t.Context(), request(`{"metadata":[]}`)); res.Allowed || res.Result.Code != http.StatusBadRequest {
		t.Errorf("an object of another form: %+v", res.Result)
	}
	req := request("")
	req.Operation, req.OldObject.Raw = admissionv1.Delete, []byte(given)
	if res := hook.Handle(t.Context(), req); !res.Allowed {
		t.Errorf("a deletion: %+v", res.Result)
	}
}

// validator records its calls.
type validator struct{ err error }

func (v validator) ValidateCreate(_ context.Context, s *corev1.Secret) (admission.Warnings, error) {
	return admission.Warnings{"create " + string(s.Type)}, v.err
}

func (v validator) ValidateUpdate(_ context.Context, old, s *corev1.Secret) (admission.Warnings, error) {
	return admission.Warnings{"update " + string(old.Type) + " " + string(s.Type)}, v.err
}

func (v validator) ValidateDelete(_ context.Context, s *corev1.Secret) (admission.Warnings, error) {
	return admission.Warnings{"delete " + string(s.Type)}, v.err
}

// TestValidator_IsCalledForItsOperation with the objects of the request.
// Warnings are part of both answers. A CONNECT is allowed.
func TestValidator_IsCalledForItsOperation(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", field.ErrorList{field.Required(field.NewPath("type"), "x")})
	for op, want := range map[admissionv1.Operation]string{admissionv1.Create: "create new", admissionv1.Update: "update old new", admissionv1.Delete: "delete old", admissionv1.Connect: ""} {
		for _, err := range []error{nil, invalid} {
			req := request(`{"type":"new"}`)
			req.Operation, req.OldObject.Raw = op, []byte(`{"type":"old"}`)
			res := admission.WithValidator(nil, validator{err}).Handle(t.Context(), req)
			switch {
			case want == "":
				if !res.Allowed || res.Warnings != nil {
					t.Errorf("%s: %+v", op, res)
				}
			case len(res.Warnings) != 1 || res.Warnings[0] != want || res.Allowed != (err == nil):
				t.Errorf("%s: %+v", op, res)
			case err != nil && (res.Result.Code != http.StatusUnprocessableEntity || res.Result.Details.Causes[0].Field != "type"):
				t.Errorf("%s: %+v", op, res.Result)
			}
		}
	}
	req := request("{}")
	req.Operation = "OTHER"
	if res := admission.WithValidator(nil, validator{}).Handle(t.Context(), req); res.Result.Code != http.StatusBadRequest {
		t.Errorf("an unknown operation: %+v", res.Result)
	}
	req.Operation = admissionv1.Delete
	if res := admission.WithValidator(nil, validator{}).Handle(t.Context(), req); res.Result.Code != http.StatusBadRequest {
		t.Errorf("a deletion without the object: %+v", res.Result)
	}
}

// TestMulti_StopsAtTheFirstDenial, and otherwise has all patches and warnings.
func TestMulti_StopsAtTheFirstDenial(t *testing.T) {
	says := func(res admission.Response) admission.Handler {
		return admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return res })
	}
	a := says(admission.PatchResponseFromRaw([]byte(`{}`), []byte(`{"a":1}`)).WithWarnings("a"))
	b := says(admission.PatchResponseFromRaw([]byte(`{}`), []byte(`{"b":1}`)).WithWarnings("b"))
	for name, multi := range map[string]func(...admission.Handler) admission.Handler{"mutating": admission.MultiMutatingHandler, "validating": admission.MultiValidatingHandler} {
		res := multi(a, b).Handle(t.Context(), admission.Request{})
		if !res.Allowed || !reflect.DeepEqual(res.Warnings, []string{"a", "b"}) {
			t.Errorf("%s: %+v", name, res)
		}
		if want := `[{"op":"add","path":"/a","value":1},{"op":"add","path":"/b","value":1}]`; name == "mutating" && string(res.Patch) != want {
			t.Errorf("patch %s", res.Patch)
		}
		if res := multi(a, says(admission.Denied("no")), b).Handle(t.Context(), admission.Request{}); res.Allowed || res.Result.Message != "no" {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

// TestDecoder_ReadsUnstructuredWithoutAKind, which an API server may not send.
func TestDecoder_ReadsUnstructuredWithoutAKind(t *testing.T) {
	var u unstructured.Unstructured
	d := admission.NewDecoder(runtime.NewScheme())
	must(t, d.Decode(request(`{"metadata":{"name":"a"},"n":1}`), &u))
	if u.GetName() != "a" || u.Object["n"] != int64(1) {
		t.Errorf("%v", u.Object)
	}
	if err := d.DecodeRaw(runtime.RawExtension{}, &metav1.PartialObjectMetadata{}); err == nil {
		t.Error("no object is no error")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
