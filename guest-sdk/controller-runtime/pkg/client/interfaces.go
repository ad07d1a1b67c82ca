// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// ObjectKey names an object of a kind.
type ObjectKey = types.NamespacedName

// ObjectKeyFromObject returns the key of obj.
func ObjectKeyFromObject(obj Object) ObjectKey {
	return ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Patch is a change of an object.
type Patch interface {
	// Type is the type of the patch.
	Type() types.PatchType
	// Data returns the patch; obj is the desired state.
	Data(obj Object) ([]byte, error)
}

// Reader reads objects.
type Reader interface {
	// Get reads the object with the key into obj.
	Get(ctx context.Context, key ObjectKey, obj Object, opts ...GetOption) error
	// List reads objects into list.
	List(ctx context.Context, list ObjectList, opts ...ListOption) error
}

// Writer writes objects.
type Writer interface {
	// Apply applies obj by server-side apply.
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...ApplyOption) error
	// Create creates obj, and updates it with the stored object.
	Create(ctx context.Context, obj Object, opts ...CreateOption) error
	// Delete deletes obj.
	Delete(ctx context.Context, obj Object, opts ...DeleteOption) error
	// Update replaces obj, and updates it with the stored object.
	Update(ctx context.Context, obj Object, opts ...UpdateOption) error
	// Patch patches obj, and updates it with the stored object.
	Patch(ctx context.Context, obj Object, patch Patch, opts ...PatchOption) error
	// DeleteAllOf deletes all objects of obj's kind that the options select.
	DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error
}

// StatusClient returns a writer for the status.
type StatusClient interface {
	// Status returns the writer of the status subresource.
	Status() SubResourceWriter
}

// SubResourceClientConstructor returns clients of subresources.
type SubResourceClientConstructor interface {
	// SubResource returns the client of a subresource, "scale" for example.
	SubResource(subResource string) SubResourceClient
}

// StatusWriter is the older name of SubResourceWriter.
type StatusWriter = SubResourceWriter

// SubResourceReader reads subresources.
type SubResourceReader interface {
	// Get reads the subresource of obj into subResource.
	Get(ctx context.Context, obj Object, subResource Object, opts ...SubResourceGetOption) error
}

// SubResourceWriter writes subresources.
type SubResourceWriter interface {
	// Create creates the subresource of obj.
	Create(ctx context.Context, obj Object, subResource Object, opts ...SubResourceCreateOption) error
	// Update replaces the subresource of obj: with obj itself, as for a status,
	// or with the body in the options.
	Update(ctx context.Context, obj Object, opts ...SubResourceUpdateOption) error
	// Patch patches the subresource of obj.
	Patch(ctx context.Context, obj Object, patch Patch, opts ...SubResourcePatchOption) error
	// Apply applies the subresource of obj by server-side apply.
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...SubResourceApplyOption) error
}

// SubResourceClient reads and writes subresources.
type SubResourceClient interface {
	SubResourceReader
	SubResourceWriter
}

// Client reads and writes objects.
type Client interface {
	Reader
	Writer
	StatusClient
	SubResourceClientConstructor

	// Scheme maps kinds to Go types.
	Scheme() *runtime.Scheme
	// RESTMapper maps kinds to resources.
	RESTMapper() meta.RESTMapper
	// GroupVersionKindFor returns the kind of obj.
	GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error)
	// IsObjectNamespaced reports whether objects of obj's kind have a namespace.
	IsObjectNamespaced(obj runtime.Object) (bool, error)
}

// WithWatch is a Client that can watch. In a module its Watch returns an error,
// because the host watches.
type WithWatch interface {
	Client
	Watch(ctx context.Context, obj ObjectList, opts ...ListOption) (watch.Interface, error)
}

// IndexerFunc returns the values of an index for an object.
type IndexerFunc func(Object) []string

// FieldIndexer registers indexes for MatchingFields.
type FieldIndexer interface {
	// IndexField registers extractValue for a field of obj's kind.
	IndexField(ctx context.Context, obj Object, field string, extractValue IndexerFunc) error
}

// IgnoreNotFound returns nil if err means that an object does not exist, and
// otherwise err.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// IgnoreAlreadyExists returns nil if err means that an object already exists,
// and otherwise err.
func IgnoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
