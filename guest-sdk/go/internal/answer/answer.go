// SPDX-License-Identifier: Apache-2.0

// Package answer decodes requests of guests and encodes answers, for hosts that
// are written in Go.
package answer

import (
	"fmt"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// To decodes a request, calls do, and encodes its answer.
func To(msg []byte, do func(map[string]any) (any, *wasmctl.Error)) (status int32, encoded []byte, err error) {
	var body any
	var fail *wasmctl.Error
	if val, err := wire.Decode(msg); err != nil {
		fail = badRequest("the request cannot cross the sandbox boundary: " + err.Error())
	} else if m, ok := val.(map[string]any); !ok {
		fail = badRequest("the request is not a map")
	} else {
		body, fail = do(m)
	}
	if fail != nil {
		status, body = int32(fail.Status), bodyOf(fail)
	}
	if encoded, err = wire.Append(nil, body); err != nil {
		err = fmt.Errorf("answer %v: %w", body, err)
	}
	return status, encoded, err
}

func badRequest(message string) *wasmctl.Error {
	return &wasmctl.Error{Status: wasmctl.StatusBadRequest, Reason: "BadRequest", Message: message}
}

// bodyOf returns the body of an error: the host's own form, or the API server's
// Status.
func bodyOf(e *wasmctl.Error) any {
	if e.Status > 0 {
		status := map[string]any{
			"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{}, "status": "Failure",
			"code": e.Status, "reason": e.Reason, "message": e.Message,
		}
		if e.Details.Exists() {
			status["details"] = e.Details
		}
		return status
	}
	body := map[string]any{"code": e.Status, "reason": e.Reason, "message": e.Message}
	if e.Rule != nil {
		body["rule"] = e.Rule
	}
	return body
}
