// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"maps"
	"net/http"
	"strings"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/text"
)

// The annotations that each decision has in the audit log. The API server puts the name of the webhook and a slash in front, and rejects a
// second slash.
const (
	AuditController = "wasmctl-controller"
	AuditModule     = "wasmctl-module"
)

// Bounds of warnings, by which the API server truncates all warnings of a request together.
const (
	maxWarnings = 4096 // characters
	maxWarning  = 256  // characters, if all are longer than maxWarnings
)

// maxCause is the maximum length of each text of a cause in bytes.
const maxCause = 1 << 10

// reasons are the reasons of denials that have only a status.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict,
	http.StatusGone: metav1.StatusReasonGone, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
	http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable, http.StatusGatewayTimeout: metav1.StatusReasonTimeout,
}

// verdict returns the decision of a guest about a request, without its patch.
func verdict(a *abi.Admission, res *abi.AdmissionResult) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{Allowed: res.Denied == nil, Warnings: warnings(res.Warnings)}
	if d := res.Denied; d != nil {
		code := cmp.Or(d.Code, http.StatusForbidden)
		status := &metav1.Status{
			Status: metav1.StatusFailure, Code: int32(code), //nolint:gosec // 400 to 599
			Reason: cmp.Or(metav1.StatusReason(d.Reason), reasons[code]), Message: text.Ends(d.Message, text.MaxError),
		}
		if len(d.Causes) > 0 {
			// Clients show causes with the object: The Job "x" is invalid: spec.n: is 1.
			status.Details = &metav1.StatusDetails{Name: a.Key.Name, Group: a.Target.Group, Kind: a.Target.Kind}
			for _, c := range d.Causes {
				status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{
					Type: metav1.CauseType(text.Truncate(c.Type, maxCause)), Field: text.Truncate(c.Field, maxCause), Message: text.Truncate(c.Message, maxCause),
				})
			}
		}
		response.Result = status
	}
	return response
}

// warnings returns the warnings as the API server would show them, on one line each.
func warnings(list []string) (shown []string) {
	total := 0
	for _, w := range list {
		if w = text.Line(w); w != "" {
			shown = append(shown, w)
			total += utf8.RuneCountInString(w)
		}
	}
	if total <= maxWarnings {
		return shown
	}
	total = 0
	for i, w := range shown {
		if r := []rune(w); len(r) > maxWarning {
			shown[i] = string(r[:maxWarning])
		}
		if total += utf8.RuneCountInString(shown[i]); total >= maxWarnings {
			return shown[:i+1]
		}
	}
	return shown
}

// audit returns the annotations of a decision.
func audit(of map[string]string, controller, digest string) map[string]string {
	annotations := make(map[string]string, len(of)+2)
	for key, value := range of {
		annotations[auditKey(key)] = text.Truncate(value, maxText)
	}
	maps.Copy(annotations, map[string]string{AuditController: controller, AuditModule: digest})
	return annotations
}

// auditKey returns a key that the API server accepts. Characters that it rejects become "_".
func auditKey(key string) string {
	const most = 63 // characters of a qualified name
	key = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '_'
	}, key)
	return strings.Trim(key[:min(len(key), most)], "-_.")
}
