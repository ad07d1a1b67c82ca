package reflector

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"unique"

	"github.com/wasmctl/wasmctl/internal/packed"
)

// Annotations and finalizers, which the host rarely reads, stay in the msgpack
// and is looked up there: kept as strings it would cost every object memory (an
// annotation often repeats the whole object). Keys are sorted, so the way is
// short: apiVersion, kind, metadata, and annotations come first.

// OwnAnnotations is what the annotations begin with that are for wasmctl. Each run
// asks for them, and few objects have one.
const OwnAnnotations = "wasmctl.dev/"

// Annotation returns the value of one of metadata.annotations and whether it is
// there. It reads the object's msgpack, which takes about 0.3 µs for most kinds,
// where the object may have it.
func (o *Object) Annotation(key string) (value string, exists bool) {
	if !o.annotated || !o.instructed && strings.HasPrefix(key, OwnAnnotations) {
		return "", false
	}
	c := packed.At(o.metadata("annotations"))
	for range c.MapLen() {
		if string(c.Text()) == key {
			return string(c.Text()), true
		}
		c.Skip()
	}
	return "", false
}

// Annotations yields metadata.annotations, sorted by key.
func (o *Object) Annotations() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for k, v := range o.annotations() {
			if !yield(string(k), string(v)) {
				return
			}
		}
	}
}

// annotations yields views of the object's bytes.
func (o *Object) annotations() iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		if !o.annotated {
			return
		}
		c := packed.At(o.metadata("annotations"))
		for range c.MapLen() {
			k := c.Text()
			if v := c.Text(); !yield(k, v) {
				return
			}
		}
	}
}

// Finalizers yields metadata.finalizers in their order.
func (o *Object) Finalizers() iter.Seq[string] {
	return func(yield func(string) bool) {
		if !o.finalized {
			return
		}
		c := packed.At(o.metadata("finalizers"))
		for range c.ArrayLen() {
			if !yield(string(c.Text())) {
				return
			}
		}
	}
}

// HasFinalizer reports whether metadata.finalizers has this name.
func (o *Object) HasFinalizer(name string) bool {
	if !o.finalized {
		return false
	}
	c := packed.At(o.metadata("finalizers"))
	for range c.ArrayLen() {
		if string(c.Text()) == name {
			return true
		}
	}
	return false
}

// MapsAlike reports whether both have the same labels, annotations and owner
// references: a mapper that goes by those requests the same objects for both.
func (o *Object) MapsAlike(p *Object) bool {
	return slices.Equal(o.labels.pairs, p.labels.pairs) && slices.Equal(o.owners, p.owners) && o.annotated == p.annotated &&
		(!o.annotated || bytes.Equal(o.metadata("annotations"), p.metadata("annotations")))
}

// APIVersion returns the object's apiVersion, "apps/v1", or "".
func (o *Object) APIVersion() string { return o.typeField("apiVersion") }

// Kind returns the object's kind, or "".
func (o *Object) Kind() string { return o.typeField("kind") }

// typeField returns a top-level string. There are few different ones.
func (o *Object) typeField(name string) string {
	if s := textAt(o.peek(), name); len(s) > 0 {
		return unique.Make(string(s)).Value()
	}
	return ""
}

// metadata returns the msgpack of one field of metadata, or nil.
func (o *Object) metadata(name string) []byte {
	return packed.Find(packed.Find(o.peek(), "metadata"), name)
}

// textAt returns a text of a map, or nil.
func textAt(b []byte, name string) []byte {
	c := packed.At(packed.Find(b, name))
	return c.Text()
}
