// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Schema is the schema of a custom resource. Kubernetes' own code prunes, defaults and
// validates objects by it.
type Schema struct {
	structural *structuralschema.Structural
	object     validation.SchemaValidator
	status     validation.SchemaValidator // of an update of the status; nil if the schema has none
	rules      *cel.Validator             // nil if the schema has no rules in CEL
}

// newSchema returns the schema of a version of a CustomResourceDefinition.
func newSchema(props *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	s := &Schema{structural: structural.DeepCopy()}
	if err := defaulting.PruneDefaults(s.structural); err != nil {
		return nil, err
	}
	if s.object, _, err = validation.NewSchemaValidator(&internal); err != nil {
		return nil, err
	}
	if status, ok := internal.Properties["status"]; ok {
		if s.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return nil, err
		}
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return s, nil
}

// coerce removes from an object, in place, the fields that the schema lacks and, if
// pruneNulls, the nulls that it does not allow, and sets defaults. It returns an error for
// invalid metadata of an embedded object.
func (s *Schema) coerce(object map[string]any, pruneNulls bool) error {
	pruning.Prune(object, s.structural, true)
	if pruneNulls {
		defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	}
	if err := objectmeta.Coerce(nil, object, s.structural, false, false); err != nil {
		return err
	}
	defaulting.Default(object, s.structural)
	return nil
}

// setDefaults sets defaults in an object, in place, and reports whether any was missing.
func (s *Schema) setDefaults(object map[string]any) bool {
	before := runtime.DeepCopyJSON(object)
	defaulting.Default(object, s.structural)
	return !reflect.DeepEqual(before, object)
}

// validate appends the errors of a new object to those of its metadata.
func (s *Schema) validate(errs field.ErrorList, object map[string]any) field.ErrorList {
	errs = append(errs, validation.ValidateCustomResource(nil, object, s.object)...)
	errs = append(errs, objectmeta.Validate(nil, object, s.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	return s.validateRules(errs, nil, object)
}

// validateUpdate appends the errors of an update, except errors in values that do not
// change.
func (s *Schema) validateUpdate(errs field.ErrorList, was, object map[string]any) field.ErrorList {
	correlated := s.correlated(was, object)
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, object, was, s.object, validation.WithRatcheting(correlated))...)
	errs = append(errs, objectmeta.Validate(nil, object, s.structural, false)...)
	errs = append(errs, s.validateLists(was, object)...)
	return s.validateRules(errs, was, object, cel.WithRatcheting(correlated))
}

// validateStatus appends the errors of an update of the status.
func (s *Schema) validateStatus(errs field.ErrorList, was, object map[string]any) field.ErrorList {
	correlated := s.correlated(was, object)
	if status, ok := object["status"]; ok {
		errs = append(errs, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, was["status"], s.status, validation.WithRatcheting(correlated.Key("status")))...)
	}
	errs = append(errs, s.validateLists(was, object)...)
	return s.validateRules(errs, was, object, cel.WithRatcheting(correlated))
}

func (s *Schema) correlated(was, object map[string]any) *common.CorrelatedObject {
	return common.NewCorrelatedObject(object, was, &model.Structural{Structural: s.structural})
}

// validateLists finds duplicates in sets and list maps, unless there were any before.
func (s *Schema) validateLists(was, object map[string]any) field.ErrorList {
	if len(listtype.ValidateListSetsAndMaps(nil, s.structural, was)) > 0 {
		return nil
	}
	return listtype.ValidateListSetsAndMaps(nil, s.structural, object)
}

// blocking are the errors that prevent the evaluation of rules in CEL.
var blocking = []field.ErrorType{
	field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
}

// validateRules appends the errors of the rules in CEL, unless an error in errs prevents
// their evaluation.
func (s *Schema) validateRules(errs field.ErrorList, was, object map[string]any, opts ...cel.Option) field.ErrorList {
	if s.rules == nil {
		return errs
	}
	for _, err := range errs {
		if slices.Contains(blocking, err.Type) {
			return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
		}
	}
	var old any // not a nil map
	if was != nil {
		old = was
	}
	found, _ := s.rules.Validate(context.Background(), nil, s.structural, object, old, celconfig.RuntimeCELCostBudget, opts...)
	return append(errs, found...)
}

// Unknown returns the first field of an object that the kind's schema lacks. It returns ""
// if there is none, or if the kind has no schema.
func (k *Kind) Unknown(object map[string]any) string {
	if k.Schema == nil {
		return ""
	}
	opts := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSON(object), k.Schema.structural, true, opts)
	if len(unknown) == 0 {
		return ""
	}
	return slices.Min(unknown)
}
