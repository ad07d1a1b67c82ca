// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/memapi"
)

func (a *Answer) check() error {
	switch {
	case a.To == "":
		return fmt.Errorf(`to is needed: the request, for example "update v1/ConfigMap default/hello"`)
	case a.Code != 0 && a.Code < 400:
		return fmt.Errorf("code: %d is not a failure; 0 breaks the connection", a.Code)
	case a.Nth < 0:
		return fmt.Errorf("nth: %d is negative", a.Nth)
	}
	return nil
}

func (e *Error) check() error {
	if e == nil {
		return nil
	}
	switch abi.ErrorClass(e.Class) {
	case "", abi.ErrorTransient, abi.ErrorPermanent, abi.ErrorConflict:
	default:
		return fmt.Errorf("error.class: %q is none of transient, permanent, conflict", e.Class)
	}
	switch abi.FailureKind(e.Kind) {
	case "", abi.FailureError, abi.FailureTrap, abi.FailureTimeout, abi.FailureMemory, abi.FailureOutput:
		return nil
	}
	return fmt.Errorf("error.kind: %q is none of error, trap, timeout, memory, output", e.Kind)
}

// matches reports whether the answer is for this request. The words are compared one by one: *
// matches any word, and missing words at the end match anything.
func (a *Answer) matches(r *memapi.Request) bool {
	have := strings.Fields(r.String())
	for i, word := range strings.Fields(a.To) {
		if i >= len(have) || word != "*" && word != have[i] {
			return false
		}
	}
	return true
}

func (a *Answer) err(r *memapi.Request) error {
	if a.Code == 0 {
		return errBroken
	}
	return refusal(r, a.Code, a.Reason, a.Message)
}

// errBroken is the error of a connection that breaks before the answer.
var errBroken = fmt.Errorf("read tcp 127.0.0.1:6443: %w", io.ErrUnexpectedEOF)

// refusal returns an error answer of the API server. If reason or message is empty, it is the usual
// one for the code.
func refusal(r *memapi.Request, code int, reason, message string) error {
	gr := r.Kind.GroupVersion().WithResource(r.Kind.Resource).GroupResource()
	var e *apierrors.StatusError
	switch code {
	case http.StatusConflict:
		e = apierrors.NewConflict(gr, r.Name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	case http.StatusInternalServerError:
		e = apierrors.NewInternalError(fmt.Errorf("etcdserver: request timed out"))
	case http.StatusTooManyRequests:
		e = apierrors.NewTooManyRequestsError("the server is busy, please try again later")
	case http.StatusGatewayTimeout:
		e = apierrors.NewTimeoutError("the request did not complete within the allotted duration", 0)
	default:
		e = apierrors.NewGenericServerResponse(code, r.Verb, gr, r.Name, message, 0, true)
	}
	if reason != "" {
		e.ErrStatus.Reason = metav1.StatusReason(reason)
	}
	if message != "" {
		e.ErrStatus.Message = message
	}
	return e
}
