// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/abi"
)

const kindScale = "Scale"

// mayGet reports whether the module may get the object of a request. If a subresource shows the
// object itself, or its scale, the right to get the object suffices.
func (a *API) mayGet(r *request) bool {
	at := r.attributes()
	at.Verb = VerbGet
	if a.cfg.Policy.Allows(at) {
		return true
	}
	shows := r.kind.Subresources[r.Subresource].Kind
	if r.Subresource == "" || shows != r.kind.Kind && shows != kindScale {
		return false
	}
	at.Subresource = ""
	return a.cfg.Policy.Allows(at)
}

// checkReads refuses a JSON patch without the right to get the object: its success reveals values,
// and it may copy them to a visible place.
func (a *API) checkReads(ctx context.Context, r *request) *refusal {
	if r.op != abi.OpAPIPatch || r.PatchType != abi.PatchJSON || a.mayGet(r) {
		return nil
	}
	return a.check(ctx, r, VerbGet)
}

// hides reports whether the module may not see the answer to a write, because it shows an object
// that the module may not get. The answer to the create of a subresource is the created value (a
// token), and a kind without get has only answers (a review).
func (a *API) hides(r *request) bool {
	switch {
	case r.op != abi.OpAPIDelete && !slices.Contains(opsWrite, r.op), a.mayGet(r):
		return false
	case r.Subresource != "":
		return r.op != abi.OpAPICreate
	}
	return len(r.kind.Verbs) == 0 || slices.Contains(r.kind.Verbs, VerbGet)
}

// identified has the fields that identify an object.
type identified struct {
	APIVersion string             `json:"apiVersion,omitempty"`
	Kind       string             `json:"kind,omitempty"`
	Metadata   identifiedMetadata `json:"metadata,omitzero"`
	// Of a Status that reports a deletion.
	Status  any `json:"status,omitempty"`
	Details any `json:"details,omitempty"`
}

type identifiedMetadata struct {
	Name            string `json:"name,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Generation      int64  `json:"generation,omitempty"`
}

// identify reduces an answer to the fields that identify the object. For a dry run, it omits the
// version, which would reveal whether anything changes.
func identify(js []byte, dryRun bool) ([]byte, error) {
	var o identified
	if err := json.Unmarshal(js, &o); err != nil {
		return nil, err
	}
	if o.Kind != "Status" || o.APIVersion != "v1" {
		o.Status, o.Details = nil, nil
	}
	if dryRun {
		o.Metadata.ResourceVersion, o.Metadata.Generation = "", 0
	}
	return json.Marshal(&o)
}

// plainCodes are refusals about only the request.
var plainCodes = []int32{
	http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge,
	http.StatusUnsupportedMediaType, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// concealed returns an error of the API server without text that may quote an object: it has the
// reason and the names of fields. Other errors are returned unchanged.
func concealed(err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || slices.Contains(plainCodes, status.ErrStatus.Code) || forbidsUser(err) {
		return err
	}
	s := status.ErrStatus
	var fields []string
	if s.Details != nil {
		d := *s.Details
		d.Causes = make([]metav1.StatusCause, len(s.Details.Causes))
		for i, c := range s.Details.Causes {
			d.Causes[i] = metav1.StatusCause{Type: c.Type, Field: c.Field}
			if c.Field != "" && !slices.Contains(fields, c.Field) {
				fields = append(fields, c.Field)
			}
		}
		s.Details = &d
	}
	s.Message = "the API server refused the write"
	if s.Reason != "" {
		s.Message += ": " + string(s.Reason)
	}
	if len(fields) > 0 {
		s.Message += ": " + strings.Join(fields, ", ")
	}
	s.Message += " (only clients that may get the object see its text)"
	return &apierrors.StatusError{ErrStatus: s}
}

// forbidsUser reports whether RBAC refused the host's user, which reveals nothing about the object.
// Admission refuses with the same code, but other texts.
func forbidsUser(err error) bool {
	why, ok := forbidden(err)
	return ok && strings.HasPrefix(why, toUser)
}

// failed returns the answer to a request that failed.
func (a *API) failed(ctx context.Context, r *request, err error) abi.Response {
	if a.hides(r) {
		err = concealed(err)
	}
	return fromError(ctx, r.op, err)
}
