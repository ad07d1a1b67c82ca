// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"strings"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// head has the fields that a reconciler reads often from its object. They are
// read once in a run, at the first access, because a search from the top of the
// object for each access costs many times as much.
type head struct {
	read bool

	apiVersion, kind, namespace, name, uid string

	generation int64
	deleting   bool
}

// names holds the strings of a head as views, in the order of its fields.
type names [5][]byte

// load reads the head of an object.
func (h *head) load(object []byte) {
	*h = head{read: true}
	var n names
	left := 3 // stop after these three fields, before spec and status
	for it := wire.Walk(object); left > 0 && it.Next(); {
		switch string(it.Key) {
		case "apiVersion":
			n[0], _ = wire.StringBytes(it.Value)
			left--
		case "kind":
			n[1], _ = wire.StringBytes(it.Value)
			left--
		case "metadata":
			h.loadMetadata(it.Value, &n)
			left--
		}
	}
	h.setNames(&n)
}

func (h *head) loadMetadata(metadata []byte, n *names) {
	for it := wire.Walk(metadata); it.Next(); {
		switch string(it.Key) {
		case "namespace":
			n[2], _ = wire.StringBytes(it.Value)
		case "name":
			n[3], _ = wire.StringBytes(it.Value)
		case "uid":
			n[4], _ = wire.StringBytes(it.Value)
		case "generation":
			h.generation, _ = wire.ReadInt(it.Value)
		case "deletionTimestamp":
			h.deleting = Type(wire.TypeOf(it.Value)) > TypeNil
		}
	}
}

// setNames copies all strings with a single allocation.
func (h *head) setNames(n *names) {
	size := 0
	for _, s := range n {
		size += len(s)
	}
	var b strings.Builder
	b.Grow(size)
	for _, s := range n {
		b.Write(s)
	}
	text := b.String()
	for i, field := range []*string{&h.apiVersion, &h.kind, &h.namespace, &h.name, &h.uid} {
		*field, text = text[:len(n[i])], text[len(n[i]):]
	}
}
