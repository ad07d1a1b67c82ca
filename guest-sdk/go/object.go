// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Object is a view of one Kubernetes object; see Value for its methods and its
// lifetime.
type Object struct {
	Value
	// head caches fields of the object of a run. It is nil for all other
	// objects.
	head *head
	// kept is the first byte of a view that nothing overwrites, or nil if the
	// view may be overwritten.
	kept *byte
}

// Decode is Value.Decode. If the Object is a small copy, decoded strings share
// its memory.
func (o Object) Decode(into any, path ...string) error {
	if len(path) == 0 && o.kept != nil && o.kept == unsafe.SliceData(o.view) {
		return wire.DecodeKept(o.view, into)
	}
	return o.Value.Decode(into, path...)
}

// loaded returns the head of the object of a run, or nil for other objects.
func (o Object) loaded() *head {
	if o.head != nil && !o.head.read {
		o.head.load(o.view)
	}
	return o.head
}

// Set sets the value at the path; see Value.Set.
func (o *Object) Set(value any, path ...string) error {
	o.head = nil // the cached fields may be outdated
	return o.Value.Set(value, path...)
}

// Remove removes the value at the path; see Value.Remove.
func (o *Object) Remove(path ...string) {
	o.head = nil
	o.Value.Remove(path...)
}

// NewObject encodes v, a Map, a Builder or a struct, and returns it as an
// object.
func NewObject(v any) (Object, error) {
	val, err := NewValue(v)
	return Object{Value: val}, err
}

// ObjectKey names an object within its kind. Namespace is empty for a
// cluster-scoped kind.
type ObjectKey struct {
	Namespace, Name string
}

// valid reports whether an object may have that name; the host refuses others
// (abi/ABI.md, section 4).
func (k ObjectKey) valid() bool {
	const most = 253 // bytes of a name in Kubernetes
	return k.Name != "" && len(k.Name) <= most && len(k.Namespace) <= most &&
		utf8.ValidString(k.Name) && utf8.ValidString(k.Namespace)
}

// AppendMsgpack writes the key in the form that messages use.
func (k ObjectKey) AppendMsgpack(dst []byte) ([]byte, error) {
	b := wire.NewBuilder(dst)
	if err := b.Texts("namespace", k.Namespace, "name", k.Name); err != nil {
		return nil, err
	}
	return b.End(), nil
}

// String returns "namespace/name", or "name" if there is no namespace.
func (k ObjectKey) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// ObjectRef names an object of the cluster.
type ObjectRef struct {
	APIVersion, Kind string
	// Namespace is empty for a cluster-scoped kind; there is no default.
	Namespace string
	Name      string
}

// Key returns the reference without its kind.
func (r ObjectRef) Key() ObjectKey { return ObjectKey{r.Namespace, r.Name} }

// Ref returns a reference to the object of that name and of the given kind.
func (k ObjectKey) Ref(apiVersion, kind string) ObjectRef {
	return ObjectRef{APIVersion: apiVersion, Kind: kind, Namespace: k.Namespace, Name: k.Name}
}

// String returns "Kind[namespace/name]".
func (r ObjectRef) String() string { return r.Kind + "[" + r.Key().String() + "]" }

// Ref returns a reference to the object.
func (o Object) Ref() ObjectRef {
	k := o.Key()
	return ObjectRef{APIVersion: o.APIVersion(), Kind: o.Kind(), Namespace: k.Namespace, Name: k.Name}
}

// Key returns the namespace and name of the object.
func (o Object) Key() ObjectKey {
	if h := o.loaded(); h != nil {
		return ObjectKey{Namespace: h.namespace, Name: h.name}
	}
	return objectKey(o.At("metadata").view)
}

// APIVersion returns the group and version, for example "apps/v1" or "v1".
func (o Object) APIVersion() string {
	if h := o.loaded(); h != nil {
		return h.apiVersion
	}
	return o.String("apiVersion")
}

// Kind returns the kind, for example "Deployment".
func (o Object) Kind() string {
	if h := o.loaded(); h != nil {
		return h.kind
	}
	return o.String("kind")
}

// Name returns metadata.name.
func (o Object) Name() string {
	if h := o.loaded(); h != nil {
		return h.name
	}
	return o.String("metadata", "name")
}

// Namespace returns metadata.namespace. It is empty for a cluster-scoped
// object.
func (o Object) Namespace() string {
	if h := o.loaded(); h != nil {
		return h.namespace
	}
	return o.String("metadata", "namespace")
}

// UID returns metadata.uid.
func (o Object) UID() string {
	if h := o.loaded(); h != nil {
		return h.uid
	}
	return o.String("metadata", "uid")
}

// ResourceVersion returns metadata.resourceVersion.
func (o Object) ResourceVersion() string { return o.String("metadata", "resourceVersion") }

// Generation returns metadata.generation, which counts changes of the spec.
func (o Object) Generation() int64 {
	if h := o.loaded(); h != nil {
		return h.generation
	}
	return o.Int("metadata", "generation")
}

// Label returns one label, or "".
func (o Object) Label(key string) string { return o.String("metadata", "labels", key) }

// Labels returns all labels.
func (o Object) Labels() map[string]string { return o.StringMap("metadata", "labels") }

// Annotation returns one annotation, or "".
func (o Object) Annotation(key string) string { return o.String("metadata", "annotations", key) }

// Annotations returns all annotations.
func (o Object) Annotations() map[string]string { return o.StringMap("metadata", "annotations") }

// CreationTimestamp returns the time at which the object was created.
func (o Object) CreationTimestamp() time.Time { return o.Time("metadata", "creationTimestamp") }

// DeletionTimestamp returns the time at which the deletion of the object was
// requested, or the zero time.
func (o Object) DeletionTimestamp() time.Time { return o.Time("metadata", "deletionTimestamp") }

// IsDeleting reports whether the deletion of the object was requested and the
// object still exists because of finalizers or dependents.
func (o Object) IsDeleting() bool {
	if h := o.loaded(); h != nil {
		return h.deleting
	}
	return o.Exists("metadata", "deletionTimestamp")
}

// Finalizers returns the finalizers of the object.
func (o Object) Finalizers() []string { return o.Strings("metadata", "finalizers") }
