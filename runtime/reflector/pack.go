package reflector

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"unique"

	"github.com/wasmctl/wasmctl/abi"
)

// Options say what of an object is kept.
type Options struct {
	// ManagedFields keeps metadata.managedFields. They are dropped otherwise:
	// they are a quarter or more of an object and hardly any controller reads them.
	ManagedFields bool
	// Metadata keeps nothing but metadata, apiVersion and kind.
	Metadata bool
	// APIVersion and Kind, where set, are put in place of the object's own: one
	// that was asked for as PartialObjectMetadata says that it is of that kind.
	APIVersion, Kind string
}

// of returns the part of content that is kept.
func (opts Options) of(content, meta map[string]any) map[string]any {
	_, managed := meta["managedFields"]
	managed = managed && !opts.ManagedFields
	if !managed && !opts.Metadata && opts.APIVersion == "" && opts.Kind == "" {
		return content
	}
	if managed {
		meta = maps.Clone(meta)
		delete(meta, "managedFields")
	}
	kept := map[string]any{}
	if !opts.Metadata {
		maps.Copy(kept, content)
	}
	kept["metadata"] = meta
	for name, value := range map[string]string{"apiVersion": opts.APIVersion, "kind": opts.Kind} {
		if own, has := content[name]; value != "" {
			kept[name] = value
		} else if has {
			kept[name] = own
		}
	}
	return kept
}

// scratch holds buffers to encode into, so that the bytes that are kept can
// then be allocated at exactly their size.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Pack makes an Object of content, the JSON-like map inside an
// unstructured.Unstructured. The map is only read, but strings of it are kept.
// The error names the field: something that no API server sends, or a value
// that may not cross the sandbox wall, such as an object nested deeper than
// abi.MaxDepth.
func Pack(content map[string]any, opts Options) (*Object, error) {
	meta, ok := content["metadata"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("object: metadata: want a map, got %T", content["metadata"])
	}
	o := &Object{}
	if err := o.readMeta(meta); err != nil {
		return nil, fmt.Errorf("object[%s]: metadata: %w", o.ref, err)
	}
	if err := o.encode(opts.of(content, meta)); err != nil {
		return nil, fmt.Errorf("object[%s]: encode: %w", o.ref, err)
	}
	return o, nil
}

func (o *Object) encode(content map[string]any) error {
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	b, err := abi.AppendValue((*buf)[:0], content)
	if err != nil {
		return err
	}
	if len(b) > abi.MaxBytes {
		*buf = nil // do not keep a buffer that large
		return abi.ErrTooLarge
	}
	*buf = b
	o.msgpack = make([]byte, len(b))
	copy(o.msgpack, b)
	return nil
}

func (o *Object) readMeta(meta map[string]any) error {
	for _, f := range []struct {
		name string
		dst  *string
	}{
		{"name", &o.ref.Name},
		{"namespace", &o.ref.Namespace},
		{"uid", &o.uid},
		{"resourceVersion", &o.resourceVersion},
	} {
		var err error
		if *f.dst, err = stringField(meta, f.name); err != nil {
			return err
		}
	}
	if o.ref.Name == "" {
		return errors.New("name: is missing")
	}
	switch g := meta["generation"].(type) {
	case nil:
	case int64:
		o.generation = g
	default:
		return fmt.Errorf("generation: want an integer, got %T", g)
	}
	o.deleting = meta["deletionTimestamp"] != nil
	annotations, _ := meta["annotations"].(map[string]any)
	finalizers, _ := meta["finalizers"].([]any)
	o.annotated, o.finalized = len(annotations) > 0, len(finalizers) > 0
	var err error
	if o.labels, err = packLabels(meta["labels"]); err != nil {
		return err
	}
	o.owners, err = packOwners(meta["ownerReferences"])
	return err
}

func packOwners(v any) ([]owner, error) {
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("ownerReferences: want a list, got %T", v)
	}
	if len(list) == 0 {
		return nil, nil
	}
	owners := make([]owner, len(list))
	for i, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("ownerReferences[%d]: want a map, got %T", i, e)
		}
		var err error
		if owners[i], err = packOwner(m); err != nil {
			return nil, fmt.Errorf("ownerReferences[%d]: %w", i, err)
		}
	}
	return owners, nil
}

func packOwner(m map[string]any) (owner, error) {
	var apiVersion, kind string
	var w owner
	for _, f := range []struct {
		name string
		dst  *string
	}{{"apiVersion", &apiVersion}, {"kind", &kind}, {"name", &w.name}, {"uid", &w.uid}} {
		var err error
		if *f.dst, err = stringField(m, f.name); err != nil {
			return owner{}, err
		}
	}
	w.kind = unique.Make(kind)
	w.group = unique.Make(groupOf(apiVersion))
	w.controller, _ = m["controller"].(bool)
	return w, nil
}

// groupOf returns "apps" for "apps/v1" and "" for "v1".
func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// stringField returns a string of m, or "" where the field is absent.
func stringField(m map[string]any, name string) (string, error) {
	switch v := m[name].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	default:
		return "", fmt.Errorf("%s: want a string, got %T", name, v)
	}
}
