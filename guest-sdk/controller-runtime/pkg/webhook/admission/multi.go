// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
)

// MultiMutatingHandler returns a handler that calls the handlers in turn until
// one denies the request, and concatenates their patches.
func MultiMutatingHandler(handlers ...Handler) Handler {
	return HandlerFunc(func(ctx context.Context, req Request) Response {
		patches, all := []jsonpatch.JsonPatchOperation{}, Allowed("")
		for _, h := range handlers {
			res := h.Handle(ctx, req)
			if !res.Allowed {
				return res
			}
			if res.PatchType != nil && *res.PatchType != admissionv1.PatchTypeJSONPatch {
				return Errored(http.StatusInternalServerError, fmt.Errorf("patch type %q of a handler: want %s", *res.PatchType, admissionv1.PatchTypeJSONPatch))
			}
			patches = append(patches, res.Patches...)
			all.Warnings = append(all.Warnings, res.Warnings...)
		}
		text, err := json.Marshal(patches)
		if err != nil {
			return Errored(http.StatusBadRequest, fmt.Errorf("patches: %w", err))
		}
		typ := admissionv1.PatchTypeJSONPatch
		all.Patch, all.PatchType = text, &typ
		return all
	})
}

// MultiValidatingHandler returns a handler that calls the handlers in turn
// until one denies the request.
func MultiValidatingHandler(handlers ...Handler) Handler {
	return HandlerFunc(func(ctx context.Context, req Request) Response {
		all := Allowed("")
		for _, h := range handlers {
			res := h.Handle(ctx, req)
			if !res.Allowed {
				return res
			}
			all.Warnings = append(all.Warnings, res.Warnings...)
		}
		return all
	})
}
