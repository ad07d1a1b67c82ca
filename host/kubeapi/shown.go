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

// mayGet reports whether the module may get what a request is about. Where a
// subresource shows the object itself, or its scale, the right to get the object
// is enough.
func (a *API) mayGet(r *request) bool {
	at := r.attributes()
	at.Verb = VerbGet
	if a.policy.Allows(at) {
		return true
	}
	shows := r.kind.Subresources[r.Subresource].Kind
	if r.Subresource == "" || shows != r.kind.Kind && shows != kindScale {
		return false
	}
	at.Subresource = ""
	return a.policy.Allows(at)
}

// checkReads refuses a JSON patch without the right to get the object: whether
// it applies tells what is there, and it may copy that to where it can be seen.
func (a *API) checkReads(ctx context.Context, r *request) *refusal {
	if r.op != abi.OpAPIPatch || r.PatchType != abi.PatchJSON || a.mayGet(r) {
		return nil
	}
	return a.check(ctx, r, VerbGet)
}

// hides reports whether the module may not see what a write answers: it shows an
// object that the module may not get. What a create of a subresource answers is
// what it made (a token), and a kind that nobody can get has only answers (a
// review).
func (a *API) hides(r *request) bool {
	switch {
	case r.op != abi.OpAPIDelete && !slices.Contains(opsWrite, r.op), a.mayGet(r):
		return false
	case r.Subresource != "":
		return r.op != abi.OpAPICreate
	}
	return len(r.kind.Verbs) == 0 || slices.Contains(r.kind.Verbs, VerbGet)
}

// identified is what of an object says which one it is.
type identified struct {
	APIVersion string             `json:"apiVersion,omitempty"`
	Kind       string             `json:"kind,omitempty"`
	Metadata   identifiedMetadata `json:"metadata,omitzero"`
	// Of a Status: that something was deleted.
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

// identify cuts an answer to what says which object it is. That of a dry run has
// no version: it would tell whether anything would change.
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

// plainCodes are refusals that speak of the request alone.
var plainCodes = []int32{
	http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge,
	http.StatusUnsupportedMediaType, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// concealed returns an error of the API server without what it may quote of an
// object: with its reason and the names of fields. It returns other errors as
// they are.
func concealed(err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || slices.Contains(plainCodes, status.ErrStatus.Code) || forbidsUser(&status.ErrStatus) {
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
	s.Message += " (its text is for those who may get the object)"
	return &apierrors.StatusError{ErrStatus: s}
}

// forbidsUser reports whether RBAC refused our user, which says nothing of the
// object. Admission refuses with the same code, and texts of its own.
func forbidsUser(s *metav1.Status) bool {
	what, why, _ := strings.Cut(s.Message, " is forbidden: ")
	return s.Code == http.StatusForbidden && strings.Count(what, " ") <= 1 && strings.HasPrefix(why, `User "`)
}

// failed returns the answer to a request that did not succeed.
func (a *API) failed(ctx context.Context, r *request, err error) abi.Response {
	if a.hides(r) {
		err = concealed(err)
	}
	return fromError(ctx, r.op, err)
}
