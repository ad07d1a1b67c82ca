// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// pruned removes from an object, in place, the fields that the API server would not store:
// unknown fields, and empty fields that are not serialized. A field with a wrong type is an
// error.
func (r *Request) pruned(object map[string]any) error {
	var meta struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := convert(object, &meta); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if kept, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&meta); err == nil {
		intersect(map[string]any{"metadata": object["metadata"]}, kept)
	}
	if !r.Kind.builtIn {
		if r.Kind.Schema != nil {
			prune(object, r.Kind.Schema, true, "")
			if r.Verb != "apply" { // in an apply, null is validated
				pruneNulls(object, r.Kind.Schema)
			}
			setDefaults(object, r.Kind.Schema)
		}
		return nil
	}
	typed, err := scheme.Scheme.New(r.Kind.GroupVersionKind)
	if err != nil {
		return err
	}
	if err := convert(object, typed); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	kept, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return err
	}
	kept["apiVersion"], kept["kind"] = object["apiVersion"], object["kind"]
	intersect(object, kept)
	return nil
}

// convert decodes as the API server does; a FieldsV1 is not changed.
func convert(object map[string]any, to any) error {
	js, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return json.Unmarshal(js, to)
}

// intersect removes from v the fields that other lacks.
func intersect(v, other any) {
	switch v := v.(type) {
	case map[string]any:
		kept, ok := other.(map[string]any)
		if !ok {
			return // a value that is a string in JSON, such as a quantity
		}
		for key, e := range v {
			if _, ok := kept[key]; !ok {
				delete(v, key)
				continue
			}
			if e == nil {
				v[key] = kept[key]
			}
			intersect(e, kept[key])
		}
	case []any:
		kept, ok := other.([]any)
		if !ok || len(kept) != len(v) {
			return
		}
		for i := range v {
			intersect(v[i], kept[i])
		}
	}
}

// Unknown returns the first field of an object that the kind's schema lacks. It returns ""
// if there is none, or if the kind has no schema.
func (k *Kind) Unknown(object map[string]any) string {
	if k.Schema == nil {
		return ""
	}
	dropped := prune(runtime.DeepCopyJSON(object), k.Schema, true, "")
	slices.Sort(dropped)
	return strings.TrimPrefix(strings.Join(dropped[:min(1, len(dropped))], ""), ".")
}

// prune removes from a custom resource the fields that its schema lacks, and returns their
// paths.
func prune(v any, s *spec.Schema, root bool, at string) (dropped []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if root && (key == "apiVersion" || key == "kind" || key == "metadata") {
				continue
			}
			switch p, known := s.Properties[key]; {
			case known:
				dropped = append(dropped, prune(e, &p, embedded(&p), at+"."+key)...)
			case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
				dropped = append(dropped, prune(e, s.AdditionalProperties.Schema, false, at+"."+key)...)
			case preserves(s) || s.AdditionalProperties != nil && s.AdditionalProperties.Allows:
			default:
				dropped = append(dropped, at+"."+key)
				delete(v, key)
			}
		}
	case []any:
		if s.Items == nil || s.Items.Schema == nil {
			return nil
		}
		for i, e := range v {
			dropped = append(dropped, prune(e, s.Items.Schema, false, fmt.Sprintf("%s[%d]", at, i))...)
		}
	}
	return dropped
}

func preserves(s *spec.Schema) bool {
	return s.Extensions["x-kubernetes-preserve-unknown-fields"] == true
}

func embedded(s *spec.Schema) bool { return s.Extensions["x-kubernetes-embedded-resource"] == true }
