// SPDX-License-Identifier: Apache-2.0

package wasmctl

import "github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"

// GetOptions are the options of Client.Get. The zero value reads the newest
// state.
type GetOptions struct {
	// Subresource is "status" or "scale", or empty for the object itself.
	Subresource string
	// ResourceVersion "0" allows an answer from the cache of the API server.
	ResourceVersion string
}

// ListOptions are the options of Client.List. The zero value lists everything.
type ListOptions struct {
	// LabelSelector and FieldSelector have the syntax of kubectl.
	LabelSelector, FieldSelector string
	// Limit is the number of objects in a page; Continue, from List.Continue,
	// asks for the next page.
	Limit    int64
	Continue string
	// ResourceVersion and ResourceVersionMatch have the meaning of the
	// Kubernetes API.
	ResourceVersion, ResourceVersionMatch string
}

// WriteOptions are the options of Client.Create, Update and Patch.
type WriteOptions struct {
	// Subresource is "status" or "scale", or empty for the object itself.
	Subresource string
	// DryRun makes the API server check the write without storing the result.
	DryRun bool
	// FieldManager is the field manager. If empty, it is "wasmctl/" and the
	// name of the controller.
	FieldManager string
	// FieldValidation is "Ignore", "Warn" (the API server's default) or
	// "Strict".
	FieldValidation string
	// Preconditions must be met, otherwise the answer is a conflict. Create
	// does not use them.
	Preconditions Preconditions
}

// ApplyOptions are the options of Client.Apply.
type ApplyOptions struct {
	WriteOptions
	// Force takes over fields that another manager owns. A controller usually
	// wants that for objects of its own. Without Force, a field of another
	// manager is a conflict.
	Force bool
}

// DeleteOptions are the options of Client.Delete.
type DeleteOptions struct {
	// DryRun makes the API server check the request without deleting the
	// object.
	DryRun bool
	// PropagationPolicy is "Background", "Foreground" or "Orphan"; empty is the
	// default of the kind.
	PropagationPolicy string
	// GracePeriodSeconds is the grace period; nil is the default of the kind.
	GracePeriodSeconds *int64
	// Preconditions must be met, otherwise the answer is a conflict.
	Preconditions Preconditions
}

// Preconditions of a write. The API server does not check empty fields.
type Preconditions struct {
	UID, ResourceVersion string
}

func (p Preconditions) append(b *wire.Builder) {
	if p == (Preconditions{}) {
		return
	}
	m := wire.NewBuilder(nil)
	m.String("uid", p.UID)
	m.String("resourceVersion", p.ResourceVersion)
	b.Raw("preconditions", m.End())
}

func (o *WriteOptions) append(b *wire.Builder) {
	b.String("subresource", o.Subresource)
	b.Bool("dryRun", o.DryRun)
	b.String("fieldManager", o.FieldManager)
	b.String("fieldValidation", o.FieldValidation)
	o.Preconditions.append(b)
}

// Patch is a change of an object, from MergePatch, JSONPatch or StrategicPatch.
type Patch struct {
	kind string
	body any
}

// MergePatch returns a patch that sets the fields of v and removes the fields
// that are nil in v (RFC 7386). It replaces arrays as a whole.
func MergePatch(v any) Patch { return Patch{"merge", v} }

// StrategicPatch is like MergePatch, but merges the arrays of built-in kinds by
// their keys. Custom resources do not support it.
func StrategicPatch(v any) Patch { return Patch{"strategic", v} }

// JSONPatch returns a patch that applies all operations in order, or none (RFC
// 6902).
func JSONPatch(ops ...PatchOp) Patch { return Patch{"json", ops} }

// PatchOp is one operation of a JSONPatch.
type PatchOp struct {
	// Op is "add", "remove", "replace", "move", "copy" or "test".
	Op string
	// Path, and From of move and copy, are JSON pointers, for example
	// "/metadata/labels/a".
	Path, From string
	// Value is the value of add, replace and test.
	Value any
}

// AppendMsgpack writes the operation in the form of RFC 6902.
func (o PatchOp) AppendMsgpack(dst []byte) ([]byte, error) {
	b := wire.NewBuilder(dst)
	b.Text("op", o.Op)
	b.Text("path", o.Path)
	switch o.Op {
	case "move", "copy":
		b.Text("from", o.From)
	case "add", "replace", "test": // they always have a value, which may be nil
		if err := b.Value("value", o.Value); err != nil {
			return nil, err
		}
	}
	return b.End(), nil
}

// List is the result of Client.List and Cache.List.
type List struct {
	Value
}

// Items iterates over the objects: for i, o := range list.Items().
func (l List) Items() func(yield func(i int, o Object) bool) {
	return func(yield func(int, Object) bool) {
		l.Elements("items")(func(i int, v Value) bool { return yield(i, Object{Value: v}) })
	}
}

// Len returns the number of objects in this page.
func (l List) Len() int { return l.Value.Len("items") }

// Continue returns the token of the next page for ListOptions.Continue. It is
// empty on the last page.
func (l List) Continue() string { return l.String("metadata", "continue") }

// ResourceVersion returns the version of the cluster state that the list shows.
func (l List) ResourceVersion() string { return l.String("metadata", "resourceVersion") }
