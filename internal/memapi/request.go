// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"cmp"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// object parses the object of a request, which must match the URL.
func (r *Request) object(js []byte) (map[string]any, error) {
	o, err := parseObject(js)
	if err != nil {
		return nil, err
	}
	return o, r.identify(o)
}

func parseObject(js []byte) (o map[string]any, err error) {
	if err := utiljson.Unmarshal(js, &o); err != nil {
		return nil, apierrors.NewBadRequest("body: " + err.Error())
	}
	if o == nil {
		return nil, apierrors.NewBadRequest("body: it is no object")
	}
	return o, nil
}

// unclassified returns an error without a reason, as the API server's storage and merge
// return it.
func unclassified(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message}}
}

// identify returns an error if an object does not match the URL.
func (r *Request) identify(object map[string]any) error {
	o := unstructured.Unstructured{Object: object}
	if r.Kind.builtIn { // a built-in kind may omit them
		o.SetAPIVersion(cmp.Or(o.GetAPIVersion(), r.Kind.GroupVersion().String()))
		o.SetKind(cmp.Or(o.GetKind(), r.Kind.Kind))
	}
	if gvk := o.GroupVersionKind(); gvk != r.Kind.GroupVersionKind && (r.Kind.builtIn || gvk.Kind == "" || gvk.GroupVersion() != r.Kind.GroupVersion()) { // otherwise validation reports it
		return apierrors.NewBadRequest(fmt.Sprintf("the object is a %s, and the URL is of %s", GVKName(gvk), GVKName(r.Kind.GroupVersionKind)))
	}
	if o.GetNamespace() == "" || !r.Kind.Namespaced {
		o.SetNamespace(r.Namespace)
	}
	if o.GetNamespace() != r.Namespace {
		return apierrors.NewBadRequest("the namespace of the object is not that of the URL")
	}
	if (r.Name != "" || r.Verb == "update") && o.GetName() != r.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) is not that of the URL (%s)", o.GetName(), r.Name))
	}
	return nil
}

func (r *Request) notFound() error {
	return apierrors.NewNotFound(r.Kind.GVR().GroupResource(), r.Name)
}

func (r *Request) conflict(format string, args ...any) error {
	return apierrors.NewConflict(r.Kind.GVR().GroupResource(), r.Name, fmt.Errorf(format, args...))
}

// invalid returns the error that the API server's validation has for one field.
func (r *Request) invalid(field, message string) *apierrors.StatusError {
	e := apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, r.Verb, r.Kind.GVR().GroupResource(), r.Name, message, 0, false)
	e.ErrStatus.Message = fmt.Sprintf("%s %q is invalid: %s: %s", r.Kind.Kind, r.Name, field, message)
	e.ErrStatus.Details = &metav1.StatusDetails{Group: r.Kind.Group, Kind: r.Kind.Kind, Name: r.Name, Causes: []metav1.StatusCause{
		{Type: metav1.CauseTypeFieldValueInvalid, Message: message, Field: field},
	}}
	return e
}
