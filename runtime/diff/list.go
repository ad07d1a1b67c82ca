// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wasmctl/wasmctl/internal/packed"
)

// identities are the fields that may identify the elements of a list. The first field that does so in both lists is used.
var identities = []string{"name", "uid", "type"}

// maxIdentity is the maximum length of an identity in bytes: no name in Kubernetes is longer.
const maxIdentity = 253

// arrays compares two lists, element by element.
func (d *differ) arrays(b, a *entries) error {
	from, ok := b.all()
	to, okTo := a.all()
	if !ok || !okTo {
		return errPacked
	}
	for _, field := range identities {
		if ids, idsTo := identify(from, field), identify(to, field); ids != nil && idsTo != nil {
			return d.named(field, from, to, ids, idsTo)
		}
	}
	for i := range max(len(from), len(to)) {
		if err := d.element("["+strconv.Itoa(i)+"]", at(from, i), at(to, i)); err != nil {
			return err
		}
	}
	return nil
}

// all reads the remaining elements. It returns false if they are malformed.
func (e *entries) all() ([][]byte, bool) {
	list := make([][]byte, 0, min(e.left, maxGrow))
	for e.next() {
		if !e.some {
			return list, true
		}
		list = append(list, e.value)
	}
	return nil, false
}

// maxGrow limits the allocation for an element count that was read from the input.
const maxGrow = 64

// at returns an element, or nil if there is none at this position.
func at(list [][]byte, i int) []byte {
	if i >= len(list) {
		return nil
	}
	return list[i]
}

// identify returns the position of each identity in a list. It returns nil if an element has no identity, or if two have the same.
func identify(list [][]byte, field string) map[string]int {
	places := make(map[string]int, len(list))
	for i, value := range list {
		id := identityOf(value, field)
		if _, there := places[id]; id == "" || there {
			return nil
		}
		places[id] = i
	}
	return places
}

// identityOf returns the identity of an element, or "" if it has none.
func identityOf(value []byte, field string) string {
	if packed.FormOf(value) != packed.Map {
		return ""
	}
	id := packed.Find(value, field)
	if packed.FormOf(id) != packed.Text {
		return ""
	}
	c := packed.At(id)
	if text := c.Text(); len(text) <= maxIdentity {
		return string(text)
	}
	return ""
}

// named compares two lists whose elements have identities: first the current elements in order, then the removed ones.
func (d *differ) named(field string, from, to [][]byte, ids, idsTo map[string]int) error {
	var before, after []string // the identities that are in both lists
	for _, value := range to {
		id := identityOf(value, field)
		var was []byte
		if i, there := ids[id]; there {
			was, after = from[i], append(after, id)
		}
		if err := d.element(bracket(field, id), was, value); err != nil {
			return err
		}
	}
	for _, value := range from {
		id := identityOf(value, field)
		if _, there := idsTo[id]; there {
			before = append(before, id)
			continue
		}
		if err := d.element(bracket(field, id), value, nil); err != nil {
			return err
		}
	}
	if slices.Equal(before, after) {
		return nil
	}
	return d.order(before, after)
}

// bracket returns the path element for an identity, in the notation of field permissions.
func bracket(field, id string) string {
	if strings.ContainsAny(id, " \t\n.[]\"=*\\,") {
		id = strconv.Quote(id)
	}
	return "[" + field + "=" + id + "]"
}

// element compares an element of two lists, which may be missing in one of them.
func (d *differ) element(part string, from, to []byte) error {
	length := len(d.path)
	d.path = append(d.path, part...)
	err := d.either(from, to)
	d.path = d.path[:length]
	return err
}

// order adds a change of the order of elements.
func (d *differ) order(before, after []string) error {
	from, err := asJSON(before)
	if err != nil {
		return err
	}
	to, err := asJSON(after)
	if err != nil {
		return err
	}
	length := len(d.path)
	d.path = append(d.path, Order...)
	d.add(from, to)
	d.path = d.path[:length]
	return nil
}
