// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"net/http"
	"slices"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Response is the answer to a Request.
type Response struct {
	// Patches change the object.
	Patches []jsonpatch.JsonPatchOperation
	admissionv1.AdmissionResponse
}

// WithWarnings returns the response with more warnings.
func (r Response) WithWarnings(warnings ...string) Response {
	r.Warnings = append(slices.Clip(r.Warnings), warnings...)
	return r
}

// Complete sets the fields that every response needs.
func (r *Response) Complete(req Request) error {
	r.UID = req.UID
	if r.Result == nil {
		r.Result = &metav1.Status{}
	}
	if r.Result.Code == 0 {
		r.Result.Code = http.StatusOK
	}
	if len(r.Patches) == 0 {
		return nil
	}
	patch, err := json.Marshal(r.Patches)
	typ := admissionv1.PatchTypeJSONPatch
	r.Patch, r.PatchType = patch, &typ
	return err
}

// Allowed allows the write.
func Allowed(message string) Response { return ValidationResponse(true, message) }

// Denied denies the write.
func Denied(message string) Response { return ValidationResponse(false, message) }

// Patched allows the write, with changes.
func Patched(message string, patches ...jsonpatch.JsonPatchOperation) Response {
	r := Allowed(message)
	r.Patches = patches
	return r
}

// Errored returns the response to a request that failed with an error.
func Errored(code int32, err error) Response {
	return Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{Code: code, Message: err.Error()}}}
}

// ValidationResponse allows or denies the write.
func ValidationResponse(allowed bool, message string) Response {
	status := &metav1.Status{Code: http.StatusOK, Message: message}
	if !allowed {
		status.Code, status.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}
	return Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: allowed, Result: status}}
}

// PatchResponseFromRaw allows the write, with the patch that turns original
// into current.
func PatchResponseFromRaw(original, current []byte) Response {
	patches, err := jsonpatch.CreatePatch(original, current)
	if err != nil {
		return Errored(http.StatusInternalServerError, err)
	}
	res := Response{Patches: patches, AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}}
	if len(patches) > 0 {
		typ := admissionv1.PatchTypeJSONPatch
		res.PatchType = &typ
	}
	return res
}
