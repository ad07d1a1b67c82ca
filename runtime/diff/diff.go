// Package diff says in what two states of an object differ, field by field, and
// writes that for people. wasmctl explain, dev, shadow and --dry-run all show what
// it says.
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

// errPacked says that bytes are not what abi.AppendValue writes of an object.
var errPacked = errors.New("object: not the msgpack of a Kubernetes object")

// Defaults of Bounds.
const (
	MaxChanges = 32
	MaxValue   = 120
)

// Bounds are those of a comparison. The zero value is the defaults.
type Bounds struct {
	// Changes is how many changes are named; a last one says that there are more.
	// Value is how many bytes of a value are shown.
	Changes, Value int
}

// Change is one field that differs between two states of an object.
type Change struct {
	// Path names the field: "spec.containers[name=app].image", "spec.args[0]",
	// "metadata.labels[app.kubernetes.io/name]". One that ends with Order is that of
	// a list: the values are the names of its elements in their order.
	Path string `json:"path"`
	// Before and After are the beginnings of the values, as JSON; empty where there
	// was none. Of two long texts they are what follows where they part. A map or
	// list above Bounds.Value bytes that has come or gone is told by its parts.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// More is the Path of the change that stands for those that have no room.
const More = "..."

// Order ends the Path of a list whose elements have changed places.
const Order = "[order]"

// Packed compares two states of an object as the cache packs them: msgpack with
// sorted keys. An empty state is that of no object. Elements of lists are
// compared by their name, uid or type where each has one of its own, else by place. Fields that only repeat or
// count other changes are skipped: resourceVersion, managedFields, and kubectl's
// copy of what it applied. The error says that one is no such state.
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

// passed are the fields that are passed over, by the map that they are in.
var passed = map[string]map[string]bool{
	"metadata":             {"resourceVersion": true, "managedFields": true},
	"metadata.annotations": {"kubectl.kubernetes.io/last-applied-configuration": true},
}

// differ walks two values side by side and decodes nothing but what differs.
type differ struct {
	bounds  Bounds
	path    []byte
	depth   int
	changes []Change
}

// values compares two values, each of which is whole.
func (d *differ) values(before, after []byte) error {
	if bytes.Equal(before, after) {
		return nil
	}
	if form := packed.FormOf(before); form == packed.FormOf(after) && (form == packed.Map || form == packed.Array) {
		return d.walk(before, after)
	}
	return d.differs(before, after)
}

// walk compares two maps, or two arrays; nil is an empty one.
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

// maps merges the keys of two maps, which are sorted.
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

// entries are those of a map or an array that have not been read.
type entries struct {
	packed.Cursor
	keyed      bool // of a map
	left       int
	some       bool // value is set, and key of a map
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

// next reads the next entry, if there is one; false says that it cannot be read.
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
	if passed[string(d.path)][string(key)] {
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

// either compares two values of which one may not be there.
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

// add adds a change, or says once that there are more.
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

// parts adds the changes of the parts of a map or list that has come or gone and
// is too long to be shown whole. It reports whether it is such a one.
func (d *differ) parts(from, to []byte) (bool, error) {
	one := to
	if to == nil {
		one = from
	}
	if from != nil && to != nil || len(one) <= d.bounds.Value && string(d.path) != "metadata" {
		return false, nil // of metadata some is passed over
	}
	if form := packed.FormOf(one); form != packed.Map && form != packed.Array {
		return false, nil
	}
	if e := entriesOf(one); e.left == 0 {
		return false, nil
	}
	return true, d.walk(from, to)
}
