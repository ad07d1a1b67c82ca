// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/internal/transcode"
)

// reasons are the machine-readable reasons of the host's own statuses.
var reasons = map[abi.Status]string{
	abi.StatusUnsupported: "Unsupported", abi.StatusDenied: "Denied", abi.StatusBadRequest: "BadRequest",
	abi.StatusTooLarge: "TooLarge", abi.StatusBudget: "BudgetExceeded", abi.StatusCancelled: "Cancelled", abi.StatusUnavailable: "Unavailable",
	abi.StatusNotSynced: "NotSynced", abi.StatusInternal: "Internal",
}

// carriedOut ends the message about a write whose answer did not arrive.
const carriedOut = " (the request may have taken effect)"

// refusal is an error of the host, with its status.
type refusal struct {
	status  abi.Status
	message string
	rule    *abi.Capability // the missing rule, for StatusDenied
	where   string          // manifest, grant or both, which lack the rule
	err     error           // the cause, or nil
}

// Error implements error.
func (r *refusal) Error() string { return r.message }

// after returns the refusal for an operation that was already sent.
func (r *refusal) after(op abi.Op) *refusal {
	if slices.Contains(opsRead, op) {
		return r
	}
	sent := *r
	sent.message += carriedOut
	return &sent
}

// Unwrap returns the cause.
func (r *refusal) Unwrap() error { return r.err }

// refuse returns an answer of the host itself.
func refuse(status abi.Status, message string) abi.Response {
	return (&refusal{status: status, message: message}).response()
}

// shorten limits the length of a guest's text in messages.
func shorten(s string) string { return text.Shorten(s, 200) }

// response returns the refusal as an answer.
func (r *refusal) response() abi.Response {
	return abi.Refuse(&abi.StatusBody{Code: r.status, Reason: reasons[r.status], Message: r.message, Rule: r.rule})
}

// fromStatus returns the refusal of the API server.
func fromStatus(status *metav1.Status) abi.Response {
	s := *status
	s.Kind, s.APIVersion = "Status", "v1"
	code := s.Code
	if code <= 0 {
		code = http.StatusInternalServerError
	}
	js, err := json.Marshal(&s)
	if err != nil {
		return refuse(abi.StatusInternal, "status of the API server: "+err.Error())
	}
	answer := fromJSON(nil, js)
	if answer.Status == abi.StatusOK {
		answer.Status = abi.Status(code)
	}
	return answer
}

// fromJSON converts the JSON of an answer to msgpack.
func fromJSON(l *ledger, js []byte) abi.Response { return fromJSONBy(&transcode.Transcoder{}, l, js) }

func fromJSONBy(direct *transcode.Transcoder, l *ledger, js []byte) abi.Response {
	body, ok := direct.Append(make([]byte, 0, len(js)), js)
	var err error
	if !ok { // a Transcoder does not support every object
		var value map[string]any
		if err = l.takeJSON(js); err == nil {
			err = utiljson.Unmarshal(js, &value)
		}
		if err == nil {
			body, err = abi.AppendValue(make([]byte, 0, len(js)), value)
		}
	}
	if own, ok := errors.AsType[*refusal](err); ok {
		return own.response()
	}
	switch {
	case errors.Is(err, abi.ErrTooDeep):
		return refuse(abi.StatusTooLarge, "answer of the API server: "+err.Error())
	case err != nil:
		return refuse(abi.StatusInternal, "answer of the API server: "+err.Error())
	case len(body) > abi.MaxBytes:
		return tooLarge(fmt.Sprintf("the answer has %d bytes, the limit is %d", len(body), abi.MaxBytes))
	}
	return abi.Response{Body: body}
}

func tooLarge(what string) abi.Response {
	return refuse(abi.StatusTooLarge, what+": list with limit and continue, or fewer objects with a selector")
}

// fromError returns the answer for a request that failed.
func fromError(ctx context.Context, op abi.Op, err error) abi.Response {
	if own, ok := errors.AsType[*refusal](err); ok {
		return own.response()
	}
	if errors.Is(err, errAnswerTooLarge) {
		return tooLarge(errAnswerTooLarge.Error())
	}
	if unknown, ok := errors.AsType[*kinds.UnknownError](err); ok {
		// The API server would have returned this if the kind had a URL.
		status := apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "", 0, true).Status()
		status.Message = unknown.Error()
		return fromStatus(&status)
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && !errors.Is(err, kinds.ErrUnavailable) {
		return fromStatus(&status.ErrStatus)
	}
	if ctx.Err() != nil {
		return refuse(abi.StatusCancelled, context.Cause(ctx).Error())
	}
	message := "the API server is unreachable, retry later: " + err.Error()
	if op != abi.OpAPIGet && op != abi.OpAPIList {
		message += carriedOut
	}
	return refuse(abi.StatusUnavailable, message)
}

// causes returns the causes in the API server's refusal.
func causes(err error) []metav1.StatusCause {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil {
		return nil
	}
	return status.ErrStatus.Details.Causes
}

// isNoSuchResource reports whether the API server does not know the URL at all, and not only the
// object. Then our information about its kinds is out of date.
func isNoSuchResource(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
