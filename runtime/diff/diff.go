// Package diff says in what two states of an object differ, field by field, and
// writes that for people. wasmctl explain, dev, shadow and --dry-run all show what
// it says.
//
//	changes, err := diff.Packed(before, after, diff.Bounds{})
//	diff.Append(&b, "    ", changes)
package diff

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wasmctl/wasmctl/abi"
)

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
	// Path names the field: "spec.containers[0].image", "metadata.labels[app.kubernetes.io/name]".
	Path string `json:"path"`
	// Before and After are the beginnings of the values, as JSON; empty where there
	// was none. Of two long texts they are what follows where they part. A map or
	// list above Bounds.Value bytes that has come or gone is told by its parts.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// More is the Path of the change that stands for those that have no room.
const More = "..."

// Packed compares two states of an object as the cache packs them: msgpack with
// sorted keys. An empty state is that of no object. What only repeats or counts
// the other changes is passed over: resourceVersion, managedFields, and kubectl's
// copy of what it applied. The error says that one is no such state.
func Packed(before, after []byte, bounds Bounds) ([]Change, error) {
	d := differ{bounds: bounds}
	if d.bounds.Changes == 0 {
		d.bounds.Changes = MaxChanges
	}
	if d.bounds.Value == 0 {
		d.bounds.Value = MaxValue
	}
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
	b, err := headOf(before)
	if err != nil {
		return err
	}
	a, err := headOf(after)
	if err != nil {
		return err
	}
	if d.depth++; d.depth > abi.MaxDepth+1 {
		return errPacked
	}
	defer func() { d.depth-- }()
	switch {
	case a.form == mapping && b.form == mapping:
		return d.maps(before[b.begin:], b.n, after[a.begin:], a.n)
	case a.form == array && b.form == array:
		return d.arrays(before[b.begin:], b.n, after[a.begin:], a.n)
	}
	return d.differs(before, after)
}

// maps merges the keys of two maps, which are sorted.
func (d *differ) maps(before []byte, nb int, after []byte, na int) error {
	b, a := entries{rest: before, left: nb}, entries{rest: after, left: na}
	if err := b.next(); err != nil {
		return err
	}
	if err := a.next(); err != nil {
		return err
	}
	for b.some || a.some {
		order := compare(&b, &a)
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
		if order <= 0 {
			if err := b.next(); err != nil {
				return err
			}
		}
		if order >= 0 {
			if err := a.next(); err != nil {
				return err
			}
		}
	}
	return nil
}

// entries are those of a map that have not been read.
type entries struct {
	rest       []byte
	left       int
	some       bool // key and value are set
	key, value []byte
}

func (e *entries) next() (err error) {
	if e.some = e.left > 0; !e.some {
		return nil
	}
	e.left--
	if e.key, e.rest, err = nextText(e.rest); err != nil {
		return err
	}
	e.value, e.rest, err = next(e.rest)
	return err
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

// arrays compares elements that stand at the same place.
func (d *differ) arrays(before []byte, nb int, after []byte, na int) error {
	for i := range max(nb, na) {
		var from, to []byte
		var err error
		if i < nb {
			if from, before, err = next(before); err != nil {
				return err
			}
		}
		if i < na {
			if to, after, err = next(after); err != nil {
				return err
			}
		}
		length := len(d.path)
		d.path = append(strconv.AppendInt(append(d.path, '['), int64(i), 10), ']')
		err = d.either(from, to)
		d.path = d.path[:length]
		if err != nil {
			return err
		}
	}
	return nil
}

// either compares two values of which one may not be there.
func (d *differ) either(from, to []byte) error {
	if from != nil && to != nil {
		return d.values(from, to)
	}
	return d.differs(from, to)
}

// differs adds a change.
func (d *differ) differs(from, to []byte) error {
	switch n := len(d.changes); {
	case n > d.bounds.Changes:
		return nil
	case n == d.bounds.Changes:
		d.changes = append(d.changes, Change{Path: More})
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
	before, after = part(before, after, d.bounds.Value)
	d.changes = append(d.changes, Change{Path: strings.ToValidUTF8(string(d.path), "?"), Before: before, After: after})
	return nil
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
	h, err := headOf(one)
	if err != nil || h.n == 0 || h.form != mapping && h.form != array {
		return false, err
	}
	if d.depth++; d.depth > abi.MaxDepth+1 {
		return false, errPacked
	}
	defer func() { d.depth-- }()
	var b, a []byte
	nb, na := 0, 0
	if to == nil {
		b, nb = one[h.begin:], h.n
	} else {
		a, na = one[h.begin:], h.n
	}
	if h.form == mapping {
		return true, d.maps(b, nb, a, na)
	}
	return true, d.arrays(b, nb, a, na)
}

// show returns a value as JSON.
func show(packed []byte) (string, error) {
	if packed == nil {
		return "", nil
	}
	v, err := abi.DecodeValue(packed)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

// lead is how much of what two texts have in common is shown where they part.
const lead = 20

// part returns at most about n bytes of two values. Where they are too long and
// part late, it begins shortly before they do.
func part(before, after string, n int) (from, to string) {
	same := 0
	for same < min(len(before), len(after)) && before[same] == after[same] {
		same++
	}
	if max(len(before), len(after)) > n && same > n/2 {
		at := same - min(lead, n/4)
		for at > 0 && !utf8.RuneStart(before[at]) {
			at--
		}
		return "..." + Clip(before[at:], n), "..." + Clip(after[at:], n)
	}
	return Clip(before, n), Clip(after, n)
}

// Clip returns at most about n bytes of a text, and says by "..." that there
// are more. The rest of the text is not kept in memory.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
