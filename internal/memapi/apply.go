// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"cmp"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

// written is the key of a field manager: a kind, or its status.
type written struct {
	schema.GroupVersionKind

	subresource string
}

// manager returns the field manager of a request, which is Kubernetes' own code.
func (s *Server) manager(r *Request) (*managedfields.FieldManager, error) {
	k, of := &r.Kind, written{r.Kind.GroupVersionKind, r.Subresource}
	if fm := s.managers[of]; fm != nil {
		return fm, nil
	}
	build := managedfields.NewDefaultCRDFieldManager
	if k.builtIn {
		build = managedfields.NewDefaultFieldManager
	}
	// A request does not gain ownership of fields that it cannot write.
	var reset map[fieldpath.APIVersion]fieldpath.Filter
	version := fieldpath.APIVersion(k.GroupVersion().String())
	if r.Subresource == "status" {
		reset = map[fieldpath.APIVersion]fieldpath.Filter{version: fieldpath.NewIncludeMatcherFilter(fieldpath.MakePrefixMatcherOrDie("status"))}
	} else if k.Status {
		reset = map[fieldpath.APIVersion]fieldpath.Filter{version: fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))}
	}
	fm, err := build(k.typeConverter(), unconverted{scheme.Scheme}, unstructuredscheme.NewUnstructuredDefaulter(), unstructuredscheme.NewUnstructuredCreator(),
		k.GroupVersionKind, k.GroupVersion(), r.Subresource, reset)
	if err == nil {
		s.managers[of] = fm
	}
	return fm, err
}

// typeConverter returns the converter that has the merge keys of the kind's lists.
func (k *Kind) typeConverter() managedfields.TypeConverter {
	if k.builtIn {
		return applyconfigurations.NewTypeConverter(scheme.Scheme)
	}
	if k.Schema != nil {
		if c, err := managedfields.NewTypeConverter(map[string]*spec.Schema{"object": k.openAPI()}, false); err == nil {
			return c
		}
	}
	return managedfields.NewDeducedTypeConverter()
}

// openAPI returns the schema of a custom resource as the API server publishes it: with its
// name and with metadata.
func (k *Kind) openAPI() *spec.Schema {
	s := k.Schema.structural.ToKubeOpenAPI()
	if s.Properties == nil {
		s.Properties = map[string]spec.Schema{}
	}
	s.Properties["metadata"] = metadata
	s.Properties["apiVersion"], s.Properties["kind"] = *spec.StringProperty(), *spec.StringProperty()
	s.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind},
	})
	return s
}

// metadata is the part of the schema of ObjectMeta that server-side apply needs: types and
// merge keys.
var metadata = func() spec.Schema {
	text, number, object := *spec.StringProperty(), *spec.Int64Property(), spec.StringOrArray{"object"}
	m := spec.Schema{SchemaProps: spec.SchemaProps{Type: object, Properties: map[string]spec.Schema{
		"generation": number, "deletionGracePeriodSeconds": number,
		"labels": *spec.MapProperty(spec.StringProperty()), "annotations": *spec.MapProperty(spec.StringProperty()),
	}}}
	for _, name := range []string{"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"} {
		m.Properties[name] = text
	}
	anything := spec.VendorExtensible{Extensions: spec.Extensions{"x-kubernetes-preserve-unknown-fields": true}}
	m.Properties["creationTimestamp"], m.Properties["deletionTimestamp"] = spec.Schema{VendorExtensible: anything}, spec.Schema{VendorExtensible: anything}
	owner := &spec.Schema{SchemaProps: spec.SchemaProps{Type: object, Properties: map[string]spec.Schema{
		"apiVersion": text, "kind": text, "name": text, "uid": *spec.StringProperty().WithDefault(""), "controller": *spec.BooleanProperty(), "blockOwnerDeletion": *spec.BooleanProperty(),
	}}}
	owners := *spec.ArrayProperty(owner)
	owners.Extensions = spec.Extensions{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"uid"}}
	finalizers := *spec.ArrayProperty(spec.StringProperty())
	finalizers.Extensions = spec.Extensions{"x-kubernetes-list-type": "set"}
	managed := *spec.ArrayProperty(&spec.Schema{SchemaProps: spec.SchemaProps{Type: object}, VendorExtensible: anything})
	m.Properties["ownerReferences"], m.Properties["finalizers"], m.Properties["managedFields"] = owners, finalizers, managed
	return m
}()

// apply serves a server-side apply, which creates an object that does not exist.
func (s *Server) apply(r *Request, live map[string]any) (int, any, error) {
	js, err := yaml.YAMLToJSON(r.body)
	if err != nil {
		return 0, nil, apierrors.NewBadRequest("body: " + err.Error())
	}
	object, err := parseObject(js)
	if err != nil {
		return 0, nil, err
	}
	wanted := unstructured.Unstructured{Object: object}
	switch {
	case r.manager == "":
		e := r.invalid("fieldManager", "Required value: is required for apply patch")
		e.ErrStatus.Details.Causes[0].Type = metav1.CauseTypeFieldValueRequired
		return 0, nil, e
	case wanted.GetManagedFields() != nil:
		return 0, nil, apierrors.NewBadRequest("metadata.managedFields must be nil")
	}
	fm, err := s.manager(r)
	if err != nil {
		return 0, nil, err
	}
	merged, err := fm.Apply(r.basis(live), &wanted, r.manager, r.force)
	if err != nil {
		return 0, nil, applyError(err)
	}
	next := merged.(*unstructured.Unstructured).DeepCopy().Object
	if live == nil && wanted.GetUID() != "" {
		return 0, nil, r.conflict("uid mismatch: the provided object specified uid %s, and no existing object was found", wanted.GetUID())
	}
	if err := r.identify(next); err != nil {
		return 0, nil, err
	}
	code := http.StatusOK
	if live == nil {
		code = http.StatusCreated
	} else if v := wanted.GetResourceVersion(); v != "" {
		(&unstructured.Unstructured{Object: next}).SetResourceVersion(v) // commit compares it
	}
	if err := r.pruned(next); err != nil {
		return 0, nil, err
	}
	if err := s.settle(r, live, next); err != nil {
		return 0, nil, err
	}
	body, err := s.commit(r, live, next)
	return code, body, err
}

// owned returns the managed fields of an object all of whose fields, or all fields of its
// status, were applied by a manager.
func (s *Server) owned(k *Kind, object map[string]any, manager, subresource string) ([]metav1.ManagedFieldsEntry, error) {
	r := &Request{Verb: "apply", Kind: *k, Subresource: subresource, manager: manager}
	o := (&unstructured.Unstructured{Object: object}).DeepCopy()
	for _, key := range bookkeeping {
		unstructured.RemoveNestedField(o.Object, "metadata", key)
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "finalizers") // any manager may own them
	s.mu.Lock()
	defer s.mu.Unlock()
	fm, err := s.manager(r)
	if err != nil {
		return nil, err
	}
	merged, err := fm.Apply(r.basis(nil), o, manager, true)
	if err != nil {
		return nil, err
	}
	return merged.(*unstructured.Unstructured).GetManagedFields(), nil
}

// bookkeeping are the metadata fields that the API server itself maintains.
var bookkeeping = []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"}

// applyError converts an error of the merge to an API status; a conflict already is one.
func applyError(err error) error {
	if _, ok := err.(apierrors.APIStatus); ok {
		return err
	}
	return unclassified(fmt.Sprintf("failed to create typed patch object: %v", err))
}

// tracked returns next with the managed fields that result from an update or a patch.
func (s *Server) tracked(r *Request, live, next map[string]any) (map[string]any, error) {
	if s.cfg.Untracked {
		return next, nil
	}
	fm, err := s.manager(r)
	if err != nil {
		return nil, err
	}
	o := fm.UpdateNoErrors(r.basis(live), &unstructured.Unstructured{Object: next}, cmp.Or(r.manager, "unknown"))
	return o.(*unstructured.Unstructured).Object, nil
}

// basis returns a copy of the live object, or an empty object if there is none.
func (r *Request) basis(live map[string]any) *unstructured.Unstructured {
	if live == nil {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(r.Kind.GroupVersionKind)
		return o
	}
	return (&unstructured.Unstructured{Object: r.versioned(live)}).DeepCopy()
}

// unconverted is a converter for unstructured objects, of which there is only one version.
type unconverted struct{ runtime.ObjectConvertor }

// ConvertToVersion implements runtime.ObjectConvertor.
func (unconverted) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
