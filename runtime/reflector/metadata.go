// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// read returns an Object with the fields that the host uses, without its bytes.
//
// The texts of all fields share one string, which is a single allocation. It is independent of the msgpack, so that a retained name does
// not retain the msgpack.
func (p *packer) read(b []byte) (*Object, error) {
	meta := packed.Find(b, "metadata")
	if packed.FormOf(meta) != packed.Map {
		return nil, fmt.Errorf("want a map, got %s", typeOf(meta))
	}
	o := &Object{}
	p.text, p.spans = p.text[:0], p.spans[:0]
	var names [3][]byte // name, resourceVersion, uid
	c := packed.At(meta)
	for range c.MapLen() {
		key, value := c.Text(), c.Value()
		var err error
		switch string(key) {
		case "annotations":
			o.annotated, o.instructed = annotated(value)
		case "deletionTimestamp":
			o.deleting = !packed.IsNil(value)
		case "finalizers":
			inner := packed.At(value)
			o.finalized = inner.ArrayLen() > 0
		case "generation":
			o.generation, err = integer(value)
		case "labels":
			o.labels, err = p.labels(value)
		case "name":
			names[0], err = text(value)
		case "namespace":
			var namespace []byte
			namespace, err = text(value)
			o.ref.Namespace = p.share(namespace).Value()
		case "ownerReferences":
			o.owners, err = p.owners(value)
		case "resourceVersion":
			names[1], err = text(value)
		case "uid":
			names[2], err = text(value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s%w", key, err)
		}
	}
	if len(names[0]) == 0 {
		return nil, errors.New("name: is missing")
	}
	for _, s := range names {
		p.add(s)
	}
	p.fill(o)
	return o, nil
}

// annotated reports whether there are annotations, and whether one of them is an instruction for wasmctl.
func annotated(annotations []byte) (some, ours bool) {
	c := packed.At(annotations)
	n := c.MapLen()
	for range n {
		key := c.Text()
		ours = ours || bytes.HasPrefix(key, []byte(OwnAnnotations))
		c.Skip()
	}
	return n > 0, ours
}

// add appends one text to those of the object.
func (p *packer) add(s []byte) {
	p.text = append(p.text, s...)
	p.spans = append(p.spans, len(p.text))
}

// fill assigns the texts to the fields of the object, in the order in which they were added.
func (p *packer) fill(o *Object) {
	all, from, spans := string(p.text), 0, p.spans
	next := func() (s string) {
		s, from, spans = all[from:spans[0]], spans[0], spans[1:]
		return s
	}
	for i := range o.labels.pairs {
		o.labels.pairs[i].value = next()
	}
	for i := range o.owners {
		o.owners[i].name, o.owners[i].uid = next(), next()
	}
	o.ref.Name, o.resourceVersion, o.uid = next(), next(), next()
}

// labels returns the labels; their values are filled in later.
func (p *packer) labels(b []byte) (Labels, error) {
	if packed.IsNil(b) {
		return Labels{}, nil
	}
	if packed.FormOf(b) != packed.Map {
		return Labels{}, fmt.Errorf(": want a map, got %s", typeOf(b))
	}
	c := packed.At(b)
	n := c.MapLen()
	if n == 0 {
		return Labels{}, nil
	}
	pairs := make([]label, n)
	for i := range pairs {
		key, value := c.Text(), c.Value()
		name, err := text(value)
		if err != nil || name == nil {
			return Labels{}, fmt.Errorf("[%s]: want a string, got %s", key, typeOf(value))
		}
		pairs[i].key = p.share(key)
		p.add(name)
	}
	return Labels{pairs}, nil
}

// owners returns the owner references; their names and uids are filled in later.
func (p *packer) owners(b []byte) ([]owner, error) {
	if packed.IsNil(b) {
		return nil, nil
	}
	if packed.FormOf(b) != packed.Array {
		return nil, fmt.Errorf(": want a list, got %s", typeOf(b))
	}
	c := packed.At(b)
	n := c.ArrayLen()
	if n == 0 {
		return nil, nil
	}
	owners := make([]owner, n)
	for i := range owners {
		value := c.Value()
		if packed.FormOf(value) != packed.Map {
			return nil, fmt.Errorf("[%d]: want a map, got %s", i, typeOf(value))
		}
		if err := p.owner(&owners[i], value); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return owners, nil
}

func (p *packer) owner(w *owner, b []byte) error {
	var texts [4][]byte
	for i, name := range [...]string{"apiVersion", "kind", "name", "uid"} {
		var err error
		if texts[i], err = text(packed.Find(b, name)); err != nil {
			return fmt.Errorf("%s%w", name, err)
		}
	}
	w.group, w.kind = p.share(groupOf(texts[0])), p.share(texts[1])
	p.add(texts[2])
	p.add(texts[3])
	controller := packed.Find(b, "controller")
	w.controller = len(controller) > 0 && controller[0] == 0xc3
	return nil
}

// groupOf returns "apps" for "apps/v1" and "" for "v1".
func groupOf(apiVersion []byte) []byte {
	group, _, ok := bytes.Cut(apiVersion, []byte("/"))
	if !ok {
		return nil
	}
	return group
}

// text returns a string, or nil if the value is absent or nil.
func text(b []byte) ([]byte, error) {
	c := packed.At(b)
	text := c.Text()
	if !c.OK() && len(b) > 0 {
		return nil, fmt.Errorf(": want a string, got %s", typeOf(b))
	}
	return text, nil
}

// integer returns an integer, or 0 if the value is nil.
func integer(b []byte) (int64, error) {
	if packed.IsNil(b) {
		return 0, nil
	}
	v, err := abi.DecodeValue(b)
	if err != nil {
		return 0, fmt.Errorf(": %w", err)
	}
	i, ok := v.(int64)
	if !ok {
		return 0, fmt.Errorf(": want an integer, got %s", typeOf(b))
	}
	return i, nil
}

// typeOf names the type of a value. An absent value counts as nil.
func typeOf(b []byte) string {
	switch form := packed.FormOf(b); {
	case packed.IsNil(b):
		return "nothing"
	case form == packed.Map:
		return "a map"
	case form == packed.Array:
		return "a list"
	case form == packed.Text:
		return "a string"
	case b[0] == 0xc2 || b[0] == 0xc3:
		return "a bool"
	}
	return "a number"
}
