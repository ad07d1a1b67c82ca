// SPDX-License-Identifier: Apache-2.0

// Package managed keeps the part of metadata.managedFields that proves that a server-side apply would change nothing: the entries of
// applies, and the names of other managers. Children of one template have the same fields, apart from the uid of their owner, so the
// text that Append returns for them is the same, and can be shared.
package managed

import (
	"bytes"
	"iter"
	"strings"

	"github.com/wasmctl/wasmctl/internal/packed"
)

// Entry is an entry of managedFields for the whole object, not for a subresource.
type Entry struct {
	Manager string
	// Applied reports that the fields were applied, and not updated.
	Applied bool
	// APIVersion is the version of the fields, and Fields are its FieldsV1 as msgpack. Both are empty if the fields were not applied.
	APIVersion string
	Fields     string
}

// noOwner replaces the uid of the owner.
const noOwner = "00000000-0000-0000-0000-000000000000"

// apply is how an entry of an apply has its operation.
var apply = []byte("\xa9operation\xa5Apply")

// Append appends the entries to dst, in the form that Entries reads. fields is the msgpack of metadata.managedFields, and owner the uid of
// the controlling owner, or "". If nothing was applied, or the entries are invalid, it returns dst.
func Append(dst, fields []byte, owner string) []byte {
	if !bytes.Contains(fields, apply) {
		return dst
	}
	start := len(dst)
	c := packed.At(fields)
	for range c.ArrayLen() {
		e := c.Value()
		if !packed.IsNil(packed.Find(e, "subresource")) {
			continue
		}
		manager, version, content := packed.Find(e, "manager"), []byte{0xc0}, []byte{0xc0}
		if bytes.Contains(e, apply) {
			version, content = packed.Find(e, "apiVersion"), packed.Find(e, "fieldsV1")
		}
		if len(manager) == 0 || len(version) == 0 || len(content) == 0 {
			return dst[:start]
		}
		dst = append(append(append(dst, manager...), version...), content...)
	}
	if !c.OK() {
		return dst[:start]
	}
	if len(owner) == len(noOwner) {
		for at := start; ; at += len(noOwner) {
			n := bytes.Index(dst[at:], []byte(owner))
			if n < 0 {
				break
			}
			at += n
			copy(dst[at:], noOwner)
		}
	}
	return dst
}

// Entries yields the entries in the result of Append. owner is the uid that Append was given.
func Entries(entries, owner string) iter.Seq[Entry] {
	if len(owner) == len(noOwner) {
		entries = strings.ReplaceAll(entries, noOwner, owner)
	}
	return func(yield func(Entry) bool) {
		c := packed.At([]byte(entries))
		for len(c.Rest()) > 0 {
			e := Entry{Manager: string(c.Text()), APIVersion: string(c.Text()), Fields: string(c.Value())}
			if !c.OK() {
				return
			}
			if e.Applied = e.APIVersion != ""; !e.Applied {
				e.Fields = ""
			}
			if !yield(e) {
				return
			}
		}
	}
}
