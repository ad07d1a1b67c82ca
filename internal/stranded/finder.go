// SPDX-License-Identifier: Apache-2.0

package stranded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// Scope is the set of objects that a controller watches.
type Scope struct {
	// Namespaces are the watched namespaces; if empty, all are.
	Namespaces []string
	// Labels is the label selector.
	Labels labels.Selector
	// Selected reports whether an object matches the field selector. If nil, there is none.
	Selected func(key abi.Key) bool
}

// Limited reports whether objects can be outside of the set.
func (s *Scope) Limited() bool {
	return len(s.Namespaces) > 0 || !s.Labels.Empty() || s.Selected != nil
}

// Has reports whether an object is in the set.
func (s *Scope) Has(o *metav1.PartialObjectMetadata) bool {
	return (len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, o.Namespace)) && s.Labels.Matches(labels.Set(o.Labels)) &&
		(s.Selected == nil || s.Selected(abi.Key{Namespace: o.Namespace, Name: o.Name}))
}

// pageSize is the number of objects of one response.
const pageSize = 500

// Finder finds objects that have a finalizer, and releases them. It requests only the metadata of objects.
type Finder struct {
	Client    metadata.Interface
	API       *kubeapi.API // takes the finalizer off
	Kind      kinds.Kind
	Finalizer string
}

// in returns the client of a namespace, or of all namespaces.
func (f *Finder) in(namespace string) metadata.ResourceInterface {
	if !f.Kind.Namespaced || namespace == "" {
		return f.Client.Resource(f.Kind.GVR())
	}
	return f.Client.Resource(f.Kind.GVR()).Namespace(namespace)
}

// Get returns an object, with its labels. It returns nil if the object is gone or does not have the finalizer.
func (f *Finder) Get(ctx context.Context, key abi.Key) (*metav1.PartialObjectMetadata, error) {
	o, err := f.in(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s[%s]: get: %w", f.Kind.Name(), key, err)
	case !slices.Contains(o.Finalizers, f.Finalizer):
		return nil, nil
	}
	return o, nil
}

// All returns the objects of a namespace, or of all namespaces, that have the finalizer and are not in the scope, which may be nil.
func (f *Finder) All(ctx context.Context, namespace string, outside *Scope) (found []Object, err error) {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := f.in(namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("%s: list: %w", f.Kind.Name(), err)
		}
		for i := range page.Items {
			o := &page.Items[i]
			if slices.Contains(o.Finalizers, f.Finalizer) && (outside == nil || !outside.Has(o)) {
				found = append(found, objectOf(o))
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return found, nil
		}
	}
}

func objectOf(o *metav1.PartialObjectMetadata) Object {
	found := Object{Key: abi.Key{Namespace: o.Namespace, Name: o.Name}, UID: string(o.UID), Finalizers: o.Finalizers}
	if o.DeletionTimestamp != nil {
		found.Deleted = o.DeletionTimestamp.Time
	}
	return found
}

// List returns the objects outside of a scope. If it may not list all namespaces, it lists those of the scope, and unknown has the reason.
func (f *Finder) List(ctx context.Context, scope *Scope) (found []Object, unknown string, err error) {
	found, err = f.All(ctx, "", scope)
	if !apierrors.IsForbidden(err) || len(scope.Namespaces) == 0 {
		return found, "", err
	}
	unknown = fmt.Sprintf("no right to list %s in all namespaces: objects outside of %s are not found", f.Kind.Name(), strings.Join(scope.Namespaces, ", "))
	if scope.Labels.Empty() && scope.Selected == nil {
		return nil, unknown, nil // all objects of these namespaces are watched
	}
	var errs []error
	for _, ns := range scope.Namespaces {
		some, err := f.All(ctx, ns, scope)
		found, errs = append(found, some...), append(errs, err)
	}
	return found, unknown, errors.Join(errs...)
}

// Look carries out a Task: it lists all objects, or looks at some, and records the results. After an error, the rest of the Task remains. An
// object that it may not read is ignored.
func (f *Finder) Look(ctx context.Context, t *Table, scope *Scope, gets []abi.Key, list bool) error {
	if list {
		found, unknown, err := f.List(ctx, scope)
		if err == nil {
			t.Listed(found, unknown)
		}
		return err
	}
	for _, key := range gets {
		o, err := f.Get(ctx, key)
		switch {
		case apierrors.IsForbidden(err), err == nil && (o == nil || scope.Has(o)):
			t.Gone(key)
		case err != nil:
			return err
		default:
			found := objectOf(o)
			t.Found(&found)
		}
	}
	return nil
}
