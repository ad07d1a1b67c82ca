// SPDX-License-Identifier: Apache-2.0

// Package admit passes requests that the host has received to the webhooks of
// the program.
package admit

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/run"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// By returns a function for the SDK that calls the webhook.
func By(hook *admission.Webhook) func(*wasmctl.Context, wasmctl.Admission) wasmctl.Verdict {
	return func(c *wasmctl.Context, a wasmctl.Admission) wasmctl.Verdict {
		req, err := request(&a)
		if err != nil {
			return wasmctl.Verdict{Err: err}
		}
		ctx, leave := run.Enter(context.Background(), c)
		defer leave()
		if hook.WithContextFunc != nil {
			like := http.Request{Method: http.MethodPost, URL: &url.URL{Path: a.Webhook}, Header: http.Header{"Content-Type": {"application/json"}}}
			ctx = hook.WithContextFunc(ctx, like.WithContext(ctx))
		}
		return verdict(req, hook.Handle(ctx, req))
	}
}

// request returns a request in the form of controller-runtime.
func request(a *wasmctl.Admission) (req admission.Request, err error) {
	kind := func(t wasmctl.AdmissionTarget) metav1.GroupVersionKind {
		return metav1.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind}
	}
	resource := func(t wasmctl.AdmissionTarget) metav1.GroupVersionResource {
		return metav1.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource}
	}
	requestKind, requestResource := kind(a.Requested), resource(a.Requested)
	req.AdmissionRequest = admissionv1.AdmissionRequest{
		UID: types.UID(a.ID), Kind: kind(a.Target), Resource: resource(a.Target), SubResource: a.Target.Subresource,
		RequestKind: &requestKind, RequestResource: &requestResource, RequestSubResource: a.Requested.Subresource,
		Name: a.Name, Namespace: a.Namespace, Operation: admissionv1.Operation(a.Operation), DryRun: &a.DryRun,
		UserInfo: authenticationv1.UserInfo{Username: a.User.Name, UID: a.User.UID, Groups: a.User.Groups},
	}
	for key, values := range a.User.Extra {
		if req.UserInfo.Extra == nil {
			req.UserInfo.Extra = map[string]authenticationv1.ExtraValue{}
		}
		req.UserInfo.Extra[key] = values
	}
	for _, part := range []struct {
		from wasmctl.Object
		to   *runtime.RawExtension
	}{{a.Object, &req.Object}, {a.Old, &req.OldObject}, {a.Options, &req.Options}} {
		if !part.from.Exists() {
			continue
		}
		if part.to.Raw, err = part.from.MarshalJSON(); err != nil {
			return req, wasmctl.Permanent(fmt.Errorf("request: %w", err))
		}
	}
	return req, nil
}

// The most that the host accepts.
const (
	maxWarnings = 50
	maxCauses   = 200
)

// verdict returns a response in the form of the SDK.
func verdict(req admission.Request, res admission.Response) wasmctl.Verdict {
	v := wasmctl.Verdict{Warnings: res.Warnings[:min(len(res.Warnings), maxWarnings)], Audit: res.AuditAnnotations}
	switch {
	case !res.Allowed:
		v.Denied = denial(res.Result)
	case len(res.Patch) > 0:
		obj, err := patched(req.Object.Raw, res)
		if err != nil {
			return wasmctl.Verdict{Err: wasmctl.Permanent(fmt.Errorf("patch of the webhook: %w", err))}
		}
		v.Object = obj
	}
	return v
}

// denial returns the denial of a status. As the API server does, it turns a
// code that is none of an error into 400.
func denial(s *metav1.Status) *wasmctl.Denial {
	d := &wasmctl.Denial{Code: int(s.Code), Reason: string(s.Reason), Message: s.Message}
	switch {
	case d.Code < http.StatusBadRequest:
		d.Code = http.StatusBadRequest
	case d.Code > 599:
		d.Code = http.StatusInternalServerError
	}
	if s.Details == nil {
		return d
	}
	for _, c := range s.Details.Causes[:min(len(s.Details.Causes), maxCauses)] {
		d.Causes = append(d.Causes, wasmctl.Cause{Type: string(c.Type), Field: c.Field, Message: c.Message})
	}
	return d
}

// patched returns the object of a request with the patch of the response.
func patched(raw []byte, res admission.Response) (obj wasmctl.Value, err error) {
	if res.PatchType == nil || *res.PatchType != admissionv1.PatchTypeJSONPatch {
		return obj, fmt.Errorf("its patchType is not %s", admissionv1.PatchTypeJSONPatch)
	}
	patch, err := jsonpatch.DecodePatch(res.Patch)
	if err != nil {
		return obj, err
	}
	text, err := patch.Apply(raw)
	if err != nil {
		return obj, err
	}
	return obj, obj.UnmarshalJSON(text)
}
