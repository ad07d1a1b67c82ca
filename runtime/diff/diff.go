// SPDX-License-Identifier: Apache-2.0

// Package diff finds the fields in which two states of an object differ, and formats the differences for people. wasmctl explain, dev, shadow
// and --dry-run all use it.
//
//	changes, err := diff.Packed(before, after, diff.Bounds{})
package diff

import (
	"bytes"
	"cmp"
	"errors"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// errPacked means that the bytes are not in the format of abi.AppendValue for an object.
var errPacked = errors.New("object: not the msgpack of a Kubernetes object")

// Defaults of Bounds.
const (
	MaxChanges = 32
	MaxValue   = 120
)

// Bounds limit the result of a comparison. The zero value means the defaults.
type Bounds struct {
	// Changes is the maximum number of changes; if there are more, a final one says so. Value is the maximum number of bytes of a value.
	Changes, Value int
}

// Change is a field that differs between two states of an object.
type Change struct {
	// Path is the path of the field, such as "spec.containers[name=app].image", "spec.args[0]" or
	// "metadata.labels[app.kubernetes.io/name]". A path that ends with Order is that of a list whose elements were reordered: the values
	// are the names of its elements in order.
	Path string `json:"path"`
	// Before and After are the beginnings of the values as JSON; empty if there is no value. If two long texts differ, they begin near the
	// first difference. An added or removed map or list of more than Bounds.Value bytes is reported as separate changes of its parts.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// More is the Path of a final change that represents those that did not fit.
const More = "..."

// Order is the suffix of the Path of a list whose elements were reordered.
const Order = "[order]"

// Packed compares two states of an object in the format of the cache: msgpack with sorted keys. An empty state means no object. Elements of
// lists are matched by name, uid or type if these are unique, and otherwise by position. Fields that only reflect other changes are
// ignored: resourceVersion, managedFields, and kubectl's copy of the applied object. It is an error if a state has another format.
func Packed(before, after []byte, bounds Bounds) ([]Change, error) {
	d := differ{bounds: bounds}
	d.bounds.Changes = cmp.Or(d.bounds.Changes, MaxChanges)
	d.bounds.Value = cmp.Or(d.bounds.Value, MaxValue)
	if len(before) == 0 {
		before = []byte{0x80}
	}
	if len(after) == 0 {
		after = []byte{0x80}
	}
	err := d.values(before, after)
	return d.changes, err
}

// ignored are the ignored fields, by the path of the map that contains them.
var ignored = map[string]map[string]bool{
	"metadata":             {"resourceVersion": true, "managedFields": true},
	"metadata.annotations": {"kubectl.kubernetes.io/last-applied-configuration": true},
}

// differ walks two values in parallel and decodes only the differences.
type differ struct {
	bounds  Bounds
	path    []byte
	depth   int
	changes []Change
}

// values compares two complete values.
func (d *differ) values(before, after []byte) error {
	if bytes.Equal(before, after) {
		return nil
	}
	if form := packed.FormOf(before); form == packed.FormOf(after) && (form == packed.Map || form == packed.Array) {
		return d.walk(before, after)
	}
	return d.differs(before, after)
}

// walk compares two maps or two arrays; nil counts as empty.
func (d *differ) walk(before, after []byte) error {
	if d.depth++; d.depth > abi.MaxDepth+1 {
		return errPacked
	}
	defer func() { d.depth-- }()
	b, a := entriesOf(before), entriesOf(after)
	if b.keyed || a.keyed {
		return d.maps(&b, &a)
	}
	return d.arrays(&b, &a)
}

// maps merges the sorted keys of two maps.
func (d *differ) maps(b, a *entries) error {
	if !b.next() || !a.next() {
		return errPacked
	}
	for b.some || a.some {
		order := compare(b, a)
		var from, to, key []byte
		if order <= 0 {
			from, key = b.value, b.key
		}
		if order >= 0 {
			to, key = a.value, a.key
		}
		if err := d.entry(key, from, to); err != nil {
			return err
		}
		if order <= 0 && !b.next() || order >= 0 && !a.next() {
			return errPacked
		}
	}
	return nil
}

// entries are the unread entries of a map or an array.
type entries struct {
	packed.Cursor
	keyed      bool // of a map
	left       int
	some       bool // value is set and, for a map, key
	key, value []byte
}

func entriesOf(b []byte) entries {
	e := entries{Cursor: packed.At(b), keyed: packed.FormOf(b) == packed.Map}
	if e.keyed {
		e.left = e.MapLen()
	} else {
		e.left = e.ArrayLen()
	}
	return e
}

// next reads the next entry, if there is one. It returns false if the entry is malformed.
func (e *entries) next() bool {
	e.value = nil
	if e.some = e.left > 0; !e.some {
		return true
	}
	e.left--
	if e.keyed {
		e.key = e.Text()
	}
	e.value = e.Value()
	return e.OK()
}

func compare(b, a *entries) int {
	switch {
	case !b.some:
		return 1
	case !a.some:
		return -1
	}
	return bytes.Compare(b.key, a.key)
}

func (d *differ) entry(key, from, to []byte) error {
	if ignored[string(d.path)][string(key)] {
		return nil
	}
	length := len(d.path)
	d.path = appendKey(d.path, string(key))
	err := d.either(from, to)
	d.path = d.path[:length]
	return err
}

// appendKey appends the key of a map to a path.
func appendKey(path []byte, key string) []byte {
	if strings.ContainsAny(key, "./[]") {
		return append(append(append(path, '['), key...), ']')
	}
	if len(path) > 0 {
		path = append(path, '.')
	}
	return append(path, key...)
}

// either compares two values, one of which may be missing.
func (d *differ) either(from, to []byte) error {
	if from != nil && to != nil {
		return d.values(from, to)
	}
	return d.differs(from, to)
}

// differs adds a change of a value.
func (d *differ) differs(from, to []byte) error {
	if len(d.changes) >= d.bounds.Changes {
		d.add("", "")
		return nil
	}
	if parts, err := d.parts(from, to); parts || err != nil {
		return err
	}
	before, err := show(from)
	if err != nil {
		return err
	}
	after, err := show(to)
	if err != nil {
		return err
	}
	d.add(before, after)
	return nil
}

// add adds a change or, once, the final change More.
func (d *differ) add(before, after string) {
	switch n := len(d.changes); {
	case n > d.bounds.Changes:
	case n == d.bounds.Changes:
		d.changes = append(d.changes, Change{Path: More})
	default:
		before, after = part(before, after, d.bounds.Value)
		d.changes = append(d.changes, Change{Path: strings.ToValidUTF8(string(d.path), "?"), Before: before, After: after})
	}
}

// parts adds the changes of the parts of an added or removed map or list that is too long to be shown as one value. It reports whether it
// did.
func (d *differ) parts(from, to []byte) (bool, error) {
	one := to
	if to == nil {
		one = from
	}
	if from != nil && to != nil || len(one) <= d.bounds.Value && string(d.path) != "metadata" {
		return false, nil // metadata contains ignored fields
	}
	if form := packed.FormOf(one); form != packed.Map && form != packed.Array {
		return false, nil
	}
	if e := entriesOf(one); e.left == 0 {
		return false, nil
	}
	return true, d.walk(from, to)
}
