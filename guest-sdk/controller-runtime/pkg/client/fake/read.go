// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

func (s *server) get(r *request) (map[string]any, error) {
	obj, err := s.stored(r)
	switch {
	case err != nil:
		return nil, err
	case r.sub == "scale":
		return r.scaleOf(obj)
	case r.sub != "" && r.sub != "status":
		return nil, fmt.Errorf("the fake does not read the subresource %s", r.sub)
	}
	return s.shown(r.gvk, obj), nil
}

// list returns all objects of the kind that match the selectors, in one page.
func (s *server) list(r *request) (map[string]any, error) {
	byLabel, err := labels.Parse(text(r.msg, "labelSelector"))
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(text(r.msg, "fieldSelector"))
	if err != nil {
		return nil, err
	}
	matches, err := s.indexes.matcher(r.gvk, byField)
	if err != nil {
		return nil, err
	}
	list, err := s.tracker.List(r.resource(), r.gvk, r.namespace)
	if err != nil {
		return nil, err
	}
	found, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	items := []any{}
	for _, o := range found {
		obj, ok := o.(client.Object)
		if !ok || !byLabel.Matches(labels.Set(obj.GetLabels())) || !matches(obj) {
			continue
		}
		content, err := contentOf(obj)
		if err != nil {
			return nil, err
		}
		items = append(items, s.shown(r.gvk, content))
	}
	apiVersion, kind := r.gvk.ToAPIVersionAndKind()
	return map[string]any{"apiVersion": apiVersion, "kind": kind + "List", "metadata": map[string]any{}, "items": items}, nil
}

type index struct {
	gvk   schema.GroupVersionKind
	field string
}

// indexes has the fields that field selectors of lists can use.
type indexes map[index]client.IndexerFunc

func (x indexes) add(obj runtime.Object, scheme *runtime.Scheme, field string, extract client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return err
	}
	if x[index{gvk, field}] != nil {
		return fmt.Errorf("index[%s %s]: already exists", gvk.Kind, field)
	}
	x[index{gvk, field}] = extract
	return nil
}

// matcher returns a function that evaluates a field selector.
func (x indexes) matcher(gvk schema.GroupVersionKind, by fields.Selector) (func(client.Object) bool, error) {
	want := by.Requirements()
	for _, r := range want {
		if r.Operator != selection.Equals && r.Operator != selection.DoubleEquals {
			return nil, fmt.Errorf("field selector %s: an index finds equal values only", by)
		}
		if x[index{gvk, r.Field}] == nil {
			return nil, fmt.Errorf("list of %v: no index with name %s has been registered; call WithIndex", gvk, r.Field)
		}
	}
	return func(obj client.Object) bool {
		return !slices.ContainsFunc(want, func(r fields.Requirement) bool {
			return !slices.Contains(x[index{gvk, r.Field}](obj), r.Value)
		})
	}, nil
}
