// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
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
		if r.Kind.Schema == nil {
			return nil
		}
		// In an apply, nulls are validated.
		if err := r.Kind.Schema.coerce(object, r.Verb != "apply"); err != nil {
			return apierrors.NewBadRequest(err.Error())
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
