// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// validate is the API server's validation of metadata and of custom resources. was is nil
// for a new object.
func (r *Request) validate(was, o *unstructured.Unstructured) error {
	meta := field.NewPath("metadata")
	var errs field.ErrorList
	if was == nil || r.Kind.builtIn {
		errs = validation.ValidateObjectMetaAccessor(o, r.Kind.Namespaced, r.Kind.validateName(), meta)
	}
	if was != nil {
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(o, was, meta)...)
	}
	if r.Kind.builtIn {
		for i, f := range o.GetFinalizers() {
			if !strings.Contains(f, "/") && f != "orphan" && f != "foregroundDeletion" && f != "kubernetes" {
				errs = append(errs, field.Invalid(meta.Child("finalizers").Index(i), f, "name is neither a standard finalizer name nor is it fully qualified"))
			}
		}
	}
	if !r.Kind.builtIn && o.GroupVersionKind() != r.Kind.GroupVersionKind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), o.GetKind(), "must be "+r.Kind.Kind))
	}
	if r.Kind.Schema != nil {
		errs = append(errs, validateSchema(r.Kind.Schema, o.Object)...)
		errs = append(errs, validateLists(o.Object, r.Kind.Schema, nil)...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(r.Kind.GroupKind(), o.GetName(), errs)
	}
	return nil
}

// validateName returns the validation of names of a kind.
func (k *Kind) validateName() validation.ValidateNameFunc {
	switch {
	case !k.builtIn:
	case k.Kind == "Namespace":
		return validation.NameIsDNSLabel
	case k.Group == "rbac.authorization.k8s.io":
		return func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	case k.Kind == "Service":
		return validation.NameIsDNS1035Label
	}
	return validation.NameIsDNSSubdomain
}

// validateSchema validates a custom resource against its schema. Rules in CEL are not
// evaluated.
func validateSchema(s *spec.Schema, object map[string]any) (errs field.ErrorList) {
	for _, err := range validate.NewSchemaValidator(s, nil, "", strfmt.Default).Validate(object).Errors {
		at := field.NewPath("object")
		invalid, ok := err.(*openapierrors.Validation) //nolint:errorlint // the validator wraps none
		if !ok {
			errs = append(errs, field.Invalid(at, nil, err.Error()))
			continue
		}
		if invalid.Name != "" && invalid.Name != "." {
			at = field.NewPath(strings.TrimPrefix(invalid.Name, "."))
		}
		switch invalid.Code() {
		case openapierrors.RequiredFailCode:
			errs = append(errs, field.Required(at, ""))
		case openapierrors.EnumFailCode:
			errs = append(errs, field.NotSupported(at, invalid.Value, []string{fmt.Sprint(invalid.Values...)}))
		case openapierrors.InvalidTypeCode:
			errs = append(errs, field.TypeInvalid(at, invalid.Value, invalid.Error()))
		default:
			errs = append(errs, field.Invalid(at, invalid.Value, invalid.Error()))
		}
	}
	return errs
}

// validateLists finds duplicate elements of sets, and duplicate keys of list maps.
func validateLists(v any, s *spec.Schema, at *field.Path) (errs field.ErrorList) {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if p, ok := s.Properties[name]; ok {
				errs = append(errs, validateLists(e, &p, at.Child(name))...)
			} else if a := s.AdditionalProperties; a != nil && a.Schema != nil {
				errs = append(errs, validateLists(e, a.Schema, at.Key(name))...)
			}
		}
	case []any:
		keys, _ := s.Extensions["x-kubernetes-list-map-keys"].([]any)
		isMap, seen := s.Extensions["x-kubernetes-list-type"] == "map", map[string]bool{}
		for i, e := range v {
			if s.Items != nil && s.Items.Schema != nil {
				errs = append(errs, validateLists(e, s.Items.Schema, at.Index(i))...)
			}
			if element, ok := e.(map[string]any); ok && isMap {
				of := make([]any, len(keys))
				for i, key := range keys {
					of[i] = element[key.(string)]
				}
				e = of
			}
			js := string(encode(e))
			if seen[js] && (isMap || s.Extensions["x-kubernetes-list-type"] == "set") {
				errs = append(errs, field.Duplicate(at.Index(i), e))
			}
			seen[js] = true
		}
	}
	return errs
}

// setDefaults sets the defaults of a schema in a value, in place, and reports whether any
// was missing.
func setDefaults(v any, s *spec.Schema) (changed bool) {
	switch v := v.(type) {
	case map[string]any:
		for name := range s.Properties {
			p := s.Properties[name]
			if value, ok := v[name]; p.Default != nil && (!ok || value == nil && !p.Nullable) {
				var value any
				_ = utiljson.Unmarshal(encode(p.Default), &value) // whole numbers are int64 in objects
				v[name], changed = value, true
			}
			changed = setDefaults(v[name], &p) || changed
		}
		if a := s.AdditionalProperties; a != nil && a.Schema != nil {
			for name := range v {
				if _, ok := s.Properties[name]; !ok {
					changed = setDefaults(v[name], a.Schema) || changed
				}
			}
		}
	case []any:
		if s.Items != nil && s.Items.Schema != nil {
			for i := range v {
				changed = setDefaults(v[i], s.Items.Schema) || changed
			}
		}
	}
	return changed
}

// pruneNulls removes nulls of properties that are not nullable, in place.
func pruneNulls(v any, s *spec.Schema) {
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			p, ok := s.Properties[name]
			if !ok {
				if s.AdditionalProperties == nil || s.AdditionalProperties.Schema == nil {
					continue
				}
				p = *s.AdditionalProperties.Schema
			}
			if e == nil && !p.Nullable && p.Default == nil {
				delete(v, name)
			}
			pruneNulls(e, &p)
		}
	case []any:
		if s.Items != nil && s.Items.Schema != nil {
			for _, e := range v {
				pruneNulls(e, s.Items.Schema)
			}
		}
	}
}
