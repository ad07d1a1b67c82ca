package wasmctl

import (
	"time"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Object is a view of one Kubernetes object; see Value for how it is read and
// how long it is good.
type Object struct {
	Value
	// head is nil but for the object of a run.
	head *head
}

// loaded returns the head of the object of a run, and nil for other objects.
func (o Object) loaded() *head {
	if o.head != nil && !o.head.read {
		o.head.load(o.view)
	}
	return o.head
}

// NewObject returns the object that v describes: a Map or a struct.
func NewObject(v any) (Object, error) {
	val, err := NewValue(v)
	return Object{Value: val}, err
}

// ObjectKey names an object within its kind. Namespace is empty for a
// cluster-scoped kind.
type ObjectKey struct {
	Namespace, Name string
}

// String returns "namespace/name", or "name" where there is no namespace.
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

// String returns "Kind[namespace/name]".
func (r ObjectRef) String() string { return r.Kind + "[" + r.Key().String() + "]" }

// Ref returns the object's name.
func (o Object) Ref() ObjectRef {
	k := o.Key()
	return ObjectRef{APIVersion: o.APIVersion(), Kind: o.Kind(), Namespace: k.Namespace, Name: k.Name}
}

// Key returns the object's name within its kind.
func (o Object) Key() ObjectKey {
	if h := o.loaded(); h != nil {
		return ObjectKey{Namespace: h.namespace, Name: h.name}
	}
	m := o.At("metadata")
	return ObjectKey{Namespace: m.String("namespace"), Name: m.String("name")}
}

// APIVersion returns the group and version, "apps/v1" or "v1".
func (o Object) APIVersion() string {
	if h := o.loaded(); h != nil {
		return h.apiVersion
	}
	return o.String("apiVersion")
}

// Kind returns the kind, "Deployment".
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

// Namespace returns metadata.namespace, empty for a cluster-scoped object.
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

// CreationTimestamp returns when the object was created.
func (o Object) CreationTimestamp() time.Time { return o.Time("metadata", "creationTimestamp") }

// DeletionTimestamp returns when the object was asked to be deleted; the zero
// time if it was not.
func (o Object) DeletionTimestamp() time.Time { return o.Time("metadata", "deletionTimestamp") }

// IsDeleting reports whether the object was asked to be deleted and is held by
// finalizers or by its dependents.
func (o Object) IsDeleting() bool {
	if h := o.loaded(); h != nil {
		return h.deleting
	}
	return o.Exists("metadata", "deletionTimestamp")
}

// OwnerReference is an entry of metadata.ownerReferences.
type OwnerReference struct {
	APIVersion         string `json:"apiVersion"`
	Kind               string `json:"kind"`
	Name               string `json:"name"`
	UID                string `json:"uid"`
	Controller         bool   `json:"controller,omitempty"`
	BlockOwnerDeletion bool   `json:"blockOwnerDeletion,omitempty"`
}

// AppendMsgpack writes the reference as the API server has it.
func (r OwnerReference) AppendMsgpack(dst []byte) ([]byte, error) {
	b := wire.NewBuilder(dst)
	b.String("apiVersion", r.APIVersion)
	b.String("kind", r.Kind)
	b.String("name", r.Name)
	b.String("uid", r.UID)
	b.Bool("controller", r.Controller)
	b.Bool("blockOwnerDeletion", r.BlockOwnerDeletion)
	return b.End(), nil
}

// ControllerRef returns the reference that makes o the controlling owner of an
// object that has it in its ownerReferences: the garbage collector then deletes
// that object with o, and a change of it reconciles o.
func (o Object) ControllerRef() OwnerReference {
	ref := o.Ref()
	return OwnerReference{
		APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: o.UID(),
		Controller: true, BlockOwnerDeletion: true,
	}
}

// OwnerReferences returns the owners of o.
func (o Object) OwnerReferences() []OwnerReference {
	var list []OwnerReference
	for it := wire.Walk(wire.At(o.view, []string{"metadata", "ownerReferences"})); it.Next(); {
		list = append(list, ownerReference(Value{it.Value}))
	}
	return list
}

func ownerReference(v Value) OwnerReference {
	return OwnerReference{
		APIVersion: v.String("apiVersion"), Kind: v.String("kind"), Name: v.String("name"), UID: v.String("uid"),
		Controller: v.Bool("controller"), BlockOwnerDeletion: v.Bool("blockOwnerDeletion"),
	}
}

// Controller returns the owner that controls o, and whether there is one.
func (o Object) Controller() (OwnerReference, bool) {
	for _, r := range o.OwnerReferences() {
		if r.Controller {
			return r, true
		}
	}
	return OwnerReference{}, false
}

// IsControlledBy reports whether owner is the controlling owner of o. As in
// client-go, the uid decides: an owner that was deleted and created again is
// another one.
func (o Object) IsControlledBy(owner Object) bool {
	r, ok := o.Controller()
	return ok && r.UID == owner.UID()
}
