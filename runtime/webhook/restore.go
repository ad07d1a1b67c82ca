// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"fmt"

	"github.com/wasmctl/wasmctl/internal/packed"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/internal/transcode"
)

// head has the parts of an object that identify it, and its metadata. Keys of the object may be in any order.
type head struct {
	apiVersion, kind, namespace, name, uid string
	meta                                   []byte // nil if it is not a map
	labels, annotations                    []byte // nil if absent or null
}

func headOf(object []byte) (h head) {
	eachEntry(object, func(key, value []byte) {
		switch string(key) {
		case "apiVersion":
			h.apiVersion = textOf(value)
		case "kind":
			h.kind = textOf(value)
		case "metadata":
			if packed.FormOf(value) == packed.Map {
				h.meta = value
			}
		}
	})
	eachEntry(h.meta, func(key, value []byte) {
		switch string(key) {
		case "namespace":
			h.namespace = textOf(value)
		case "name":
			h.name = textOf(value)
		case "uid":
			h.uid = textOf(value)
		case "labels":
			h.labels = present(value)
		case "annotations":
			h.annotations = present(value)
		}
	})
	return h
}

// present returns a value, or nil if it is null.
func present(value []byte) []byte {
	if packed.IsNil(value) {
		return nil
	}
	return value
}

// eachEntry calls do for each entry of a map.
func eachEntry(m []byte, do func(key, value []byte)) {
	if packed.FormOf(m) != packed.Map {
		return
	}
	c := packed.At(m)
	for range c.MapLen() {
		key := c.Text()
		do(key, c.Value())
	}
}

// describe names the object in errors.
func (h *head) describe() string {
	name := h.name
	if h.namespace != "" {
		name = h.namespace + "/" + name
	}
	return fmt.Sprintf("%s[%s]", text.Shorten(h.kind, 200), text.Shorten(name, 600))
}

var (
	errNotText = errors.New("labels and annotations must be maps of texts")
	errNotJSON = errors.New("the object of the module is not valid: a key appears twice, or it nests too deeply")
)

// restore returns the JSON of an object that a module has converted, with the metadata of the original, but its own labels and annotations.
// The API server does the same, and restores managedFields.
func restore(original, converted []byte, apiVersion string) ([]byte, error) {
	want, got := headOf(original), headOf(converted)
	for _, f := range [...]struct{ key, got, want string }{
		{"apiVersion", got.apiVersion, apiVersion},
		{"kind", got.kind, want.kind},
		{"metadata.name", got.name, want.name},
		{"metadata.namespace", got.namespace, want.namespace},
		{"metadata.uid", got.uid, want.uid},
	} {
		if f.got != f.want {
			return nil, fmt.Errorf("the module returned %s %.300q, want %.300q", f.key, f.got, f.want)
		}
	}
	for _, m := range [][]byte{got.labels, got.annotations} {
		ok := m == nil || packed.FormOf(m) == packed.Map
		eachEntry(m, func(_, value []byte) { ok = ok && packed.FormOf(value) == packed.Text })
		if !ok {
			return nil, errNotText
		}
	}
	meta := edited(want.meta, func(key, value []byte) []byte {
		if k := string(key); k == "labels" || k == "annotations" || k == "managedFields" {
			return nil
		}
		return value
	}, entry{"labels", got.labels}, entry{"annotations", got.annotations})
	object := edited(converted, func(key, value []byte) []byte {
		if string(key) == "metadata" {
			return meta
		}
		return value
	})
	js, ok := transcode.AppendJSON(make([]byte, 0, len(object)*5/4), object)
	if !ok {
		return nil, errNotJSON
	}
	return js, nil
}
