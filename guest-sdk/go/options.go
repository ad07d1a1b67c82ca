package wasmctl

import "github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"

// GetOptions of Client.Get. The zero value reads the newest state.
type GetOptions struct {
	// Subresource is "status" or "scale"; empty is the object.
	Subresource string
	// ResourceVersion "0" reads from the cache of the API server.
	ResourceVersion string
}

// ListOptions of Client.List. The zero value lists everything.
type ListOptions struct {
	// LabelSelector and FieldSelector are written as for kubectl.
	LabelSelector, FieldSelector string
	// Limit is how many objects a page has; Continue, from List.Continue, asks
	// for the next page.
	Limit    int64
	Continue string
	// ResourceVersion and ResourceVersionMatch are those of the Kubernetes API.
	ResourceVersion, ResourceVersionMatch string
}

// WriteOptions of Client.Create, Update and Patch.
type WriteOptions struct {
	// Subresource is "status" or "scale"; empty is the object.
	Subresource string
	// DryRun makes the API server check the write without storing it.
	DryRun bool
	// FieldManager is, if empty, "wasmctl/" and the controller's name.
	FieldManager string
	// FieldValidation is "Ignore", "Warn" (the API server's default) or
	// "Strict".
	FieldValidation string
	// Preconditions must hold, else the call answers a conflict. Create reads
	// none.
	Preconditions Preconditions
}

// ApplyOptions of Client.Apply.
type ApplyOptions struct {
	WriteOptions
	// Force takes over fields that another manager owns. A controller usually
	// wants that for objects of its own. Without Force such a field is a
	// conflict.
	Force bool
}

// DeleteOptions of Client.Delete.
type DeleteOptions struct {
	// DryRun makes the API server check the request without running it.
	DryRun bool
	// PropagationPolicy is "Background", "Foreground" or "Orphan"; empty is the
	// kind's own.
	PropagationPolicy string
	// GracePeriodSeconds is, if nil, the kind's own.
	GracePeriodSeconds *int64
	// Preconditions must hold, else the call answers a conflict.
	Preconditions Preconditions
}

// Preconditions of a write. Empty fields are not checked.
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

// Patch is a change of an object: MergePatch, JSONPatch or StrategicPatch.
type Patch struct {
	kind string
	body any
}

// MergePatch sets the fields that v has and removes those that are nil there
// (RFC 7386). Arrays are replaced as a whole.
func MergePatch(v any) Patch { return Patch{"merge", v} }

// StrategicPatch is MergePatch that merges the arrays of built-in kinds by
// their keys. Custom resources do not have it.
func StrategicPatch(v any) Patch { return Patch{"strategic", v} }

// JSONPatch applies the operations in order, all or none (RFC 6902).
func JSONPatch(ops ...PatchOp) Patch { return Patch{"json", ops} }

// PatchOp is one operation of a JSONPatch.
type PatchOp struct {
	// Op is "add", "remove", "replace", "move", "copy" or "test".
	Op string
	// Path, and From of move and copy, are JSON pointers: "/metadata/labels/a".
	Path, From string
	// Value is that of add, replace and test.
	Value any
}

// AppendMsgpack writes the operation as RFC 6902 has it.
func (o PatchOp) AppendMsgpack(dst []byte) ([]byte, error) {
	b := wire.NewBuilder(dst)
	b.Text("op", o.Op)
	b.Text("path", o.Path)
	switch o.Op {
	case "move", "copy":
		b.Text("from", o.From)
	case "add", "replace", "test": // nil is a value too
		if err := b.Value("value", o.Value); err != nil {
			return nil, err
		}
	}
	return b.End(), nil
}

// List is what Client.List returns.
type List struct {
	Value
}

// Items walks the objects: for i, o := range list.Items().
func (l List) Items() func(yield func(i int, o Object) bool) {
	return func(yield func(int, Object) bool) {
		l.Elements("items")(func(i int, v Value) bool { return yield(i, Object{Value: v}) })
	}
}

// Len returns the number of objects in this page.
func (l List) Len() int { return l.Value.Len("items") }

// Continue is what ListOptions.Continue takes to get the next page; empty on
// the last one.
func (l List) Continue() string { return l.String("metadata", "continue") }

// ResourceVersion is the state of the cluster that the list shows.
func (l List) ResourceVersion() string { return l.String("metadata", "resourceVersion") }
