// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// patched returns the object after the patch.
func (r *Request) patched(live map[string]any) (map[string]any, error) {
	old, err := json.Marshal(r.versioned(live))
	if err != nil {
		return nil, err
	}
	js, err := r.patchJSON(old)
	if err != nil {
		return nil, err
	}
	next, err := parseObject(js)
	if err != nil {
		return nil, err
	}
	if err := r.pruned(next); err != nil {
		return nil, r.invalid("patch", err.Error())
	}
	return next, r.identify(next)
}

func (r *Request) patchJSON(old []byte) ([]byte, error) {
	switch types.PatchType(r.contentType) {
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(r.body)
		if err != nil {
			return nil, apierrors.NewBadRequest("patch: " + err.Error())
		}
		js, err := patch.Apply(old)
		if err != nil {
			// An operation failed, or a test did: the API server's answer names neither a
			// cause nor a field.
			e := apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", r.Kind.GVR().GroupResource(), "", err.Error(), 0, false)
			e.ErrStatus.Details = &metav1.StatusDetails{}
			return nil, e
		}
		return js, nil
	case types.MergePatchType:
		js, err := jsonpatch.MergePatch(old, r.body)
		if err != nil {
			return nil, apierrors.NewBadRequest("patch: " + err.Error())
		}
		return js, nil
	case types.StrategicMergePatchType:
		return r.strategic(old)
	default:
	}
	return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, r.Verb, r.Kind.GVR().GroupResource(), r.Name, fmt.Sprintf("unknown patch type %q", r.contentType), 0, false)
}

// strategic applies a strategic merge patch. As in the API server, custom resources do not
// support it.
func (r *Request) strategic(old []byte) ([]byte, error) {
	typed, err := scheme.Scheme.New(r.Kind.GroupVersionKind)
	if err != nil || !r.Kind.builtIn {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, r.Verb, r.Kind.GVR().GroupResource(), r.Name,
			"the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml", 0, false)
	}
	js, err := strategicpatch.StrategicMergePatch(old, r.body, typed)
	if err != nil {
		return nil, apierrors.NewBadRequest("patch: " + err.Error())
	}
	return js, nil
}
