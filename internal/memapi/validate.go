// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validate is the API server's validation of an object. was is nil for a new object.
func (r *Request) validate(was, o *unstructured.Unstructured) error {
	var errs field.ErrorList
	if r.Kind.builtIn {
		errs = r.validateBuiltIn(was, o)
	} else {
		errs = r.validateCustom(was, o)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(r.Kind.GroupKind(), o.GetName(), errs)
	}
	return nil
}

func (r *Request) validateCustom(was, o *unstructured.Unstructured) (errs field.ErrorList) {
	if o.GetKind() != r.Kind.Kind {
		return field.ErrorList{field.Invalid(field.NewPath("kind"), o.GetKind(), "must be "+r.Kind.Kind)}
	}
	meta := field.NewPath("metadata")
	if was == nil {
		errs = validation.ValidateObjectMetaAccessor(o, r.Kind.Namespaced, validation.NameIsDNSSubdomain, meta)
	} else {
		errs = validation.ValidateObjectMetaAccessorUpdate(o, was, meta)
	}
	switch s := r.Kind.Schema; {
	case s == nil:
		return errs
	case was == nil:
		return s.validate(errs, o.Object)
	case r.Subresource == "status":
		return s.validateStatus(errs, was.Object, o.Object)
	default:
		return s.validateUpdate(errs, was.Object, o.Object)
	}
}
