// SPDX-License-Identifier: Apache-2.0

// Package failure converts errors of the host to those of apimachinery.
package failure

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// codes maps errors of the host to the closest answers of an API server.
var codes = map[int]struct {
	code   int32
	reason metav1.StatusReason
}{
	wasmctl.StatusUnsupported: {http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed},
	wasmctl.StatusDenied:      {http.StatusForbidden, metav1.StatusReasonForbidden},
	wasmctl.StatusBadRequest:  {http.StatusBadRequest, metav1.StatusReasonBadRequest},
	wasmctl.StatusTooLarge:    {http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge},
	wasmctl.StatusBudget:      {http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests},
	wasmctl.StatusCancelled:   {http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
	wasmctl.StatusUnavailable: {http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
	wasmctl.StatusNotSynced:   {http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
	wasmctl.StatusInternal:    {http.StatusInternalServerError, metav1.StatusReasonInternalError},
}

// FromHost returns err as an *apierrors.StatusError if it is an answer of the
// host, so that apierrors.IsNotFound and similar functions work. A status of
// the API server stays unchanged.
func FromHost(err error) error {
	e, ok := wasmctl.AsError(err)
	if !ok {
		return err
	}
	s := metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReason(e.Reason), Message: e.Message, Code: int32(e.Status)} //nolint:gosec // an HTTP code
	if e.Status < 0 {
		like, known := codes[e.Status]
		if !known {
			like = codes[wasmctl.StatusInternal]
		}
		s.Code, s.Reason, s.Message = like.code, like.reason, e.Error()
		if e.Reason == "OutsideRun" {
			s.Message += ": name a kind that a webhook, a map function or a predicate reads by Owns or Watches of its controller, and write in Reconcile"
		}
		return &apierrors.StatusError{ErrStatus: s}
	}
	if s.Message == "" {
		s.Message = e.Error()
	}
	s.Details = details(e)
	return &apierrors.StatusError{ErrStatus: s}
}

// NoMatch returns err, unless the API server lacks the kind. It then returns
// the error with which the real client fails before it sends the request.
func NoMatch(err error, gvk schema.GroupVersionKind) error {
	if apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return err
}

// details returns the details of the API server's status, as far as they can be
// decoded.
func details(e *wasmctl.Error) *metav1.StatusDetails {
	if !e.Details.Exists() {
		return nil
	}
	v := e.Details
	d := &metav1.StatusDetails{
		Name: v.String("name"), Group: v.String("group"), Kind: v.String("kind"), UID: types.UID(v.String("uid")),
		RetryAfterSeconds: int32(v.Int("retryAfterSeconds")), //nolint:gosec // seconds
	}
	for _, c := range v.Elements("causes") {
		d.Causes = append(d.Causes, metav1.StatusCause{
			Type: metav1.CauseType(c.String("reason")), Message: c.String("message"), Field: c.String("field"),
		})
	}
	return d
}
