// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"unique"

	"github.com/wasmctl/wasmctl/internal/packed"
)

// The host rarely reads annotations and finalizers. They are looked up in the msgpack bytes: storing them as strings would cost memory for
// every object (an annotation often repeats the whole object). Keys are sorted, so the search is short: apiVersion, kind and metadata come
// first, and annotations come first in metadata.

// OwnAnnotations is the prefix of annotations that are instructions for wasmctl. Every run looks for them, and few objects have one.
const OwnAnnotations = "wasmctl.dev/"

// Annotation returns the value of a metadata.annotations key, and whether it exists. If the object may have it, this searches the msgpack,
// which takes about 0.3 µs for most kinds.
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

// annotations yields slices of the object's bytes.
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

// Finalizers yields metadata.finalizers in order.
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

// HasFinalizer reports whether metadata.finalizers contains the name.
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

// MapsAlike reports whether both objects have the same labels, annotations and owner references, so that a mapper that uses only these
// requests the same objects for both.
func (o *Object) MapsAlike(p *Object) bool {
	return slices.Equal(o.labels.pairs, p.labels.pairs) && slices.Equal(o.owners, p.owners) && o.annotated == p.annotated &&
		(!o.annotated || bytes.Equal(o.metadata("annotations"), p.metadata("annotations")))
}

// APIVersion returns the object's apiVersion, such as "apps/v1", or "".
func (o *Object) APIVersion() string { return o.typeField("apiVersion") }

// Kind returns the object's kind, or "".
func (o *Object) Kind() string { return o.typeField("kind") }

// typeField returns a top-level string. It is interned, because there are few different ones.
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

// textAt returns a string of a map, or nil.
func textAt(b []byte, name string) []byte {
	c := packed.At(packed.Find(b, name))
	return c.Text()
}
