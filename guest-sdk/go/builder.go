// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"encoding/binary"
	"errors"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Builder writes a value to send, an object for example, directly into its
// message. It makes no Go map and sorts no keys, which is a large part of the
// cost of a run with Map. A Builder can be used wherever a Map can.
//
//	wasmctl.BuildObject(ref).
//		Map("labels").Set("app", name).End().
//		Controller(owner).
//		End().
//		Map("data").Set("text", text)
//
// Set and the other Set methods write an entry of the open map. Add and the
// other Add methods write an element of the open list. Map, List and AddMap
// open another container, and End closes it. Sending closes all containers that
// are still open. A key must not occur twice; the host refuses an object that
// repeats a key. The Builder remembers the first mistake, for example text that
// is not UTF-8 or Add in a map. The call that sends the Builder returns it; see
// Err.
type Builder struct {
	b    []byte
	open []container
	err  error

	stack [8]container // backs open without an allocation for most objects
}

// container is a map or a list that is being written.
type container struct {
	start int // offset of its header in b, which is three bytes long
	n     int // entries so far
	list  bool
}

// Build starts a map.
func Build() *Builder {
	b := &Builder{b: make([]byte, 0, 512)}
	b.open = b.stack[:0]
	return b.begin(false)
}

// BuildObject starts an object: apiVersion, kind and metadata with its name and
// namespace. metadata stays open for labels, annotations and owners; End closes
// it.
func BuildObject(ref ObjectRef) *Builder {
	b := Build().Set("apiVersion", ref.APIVersion).Set("kind", ref.Kind).Map("metadata").Set("name", ref.Name)
	if ref.Namespace != "" {
		b.Set("namespace", ref.Namespace)
	}
	return b
}

// begin opens a map or a list as the next value.
func (b *Builder) begin(list bool) *Builder {
	if len(b.open) > wire.MaxDepth {
		b.fail(wire.ErrTooDeep)
		return b
	}
	head := byte(0xde) // a map of up to 65535 entries
	if list {
		head = 0xdc
	}
	b.open = append(b.open, container{start: len(b.b), list: list})
	b.b = append(b.b, head, 0, 0)
	return b
}

// End closes the innermost open container.
func (b *Builder) End() *Builder {
	if len(b.open) < 2 { // AppendMsgpack closes the outermost map
		b.fail(errors.New("End without an open Map or List"))
		return b
	}
	b.close()
	return b
}

func (b *Builder) close() {
	top := b.open[len(b.open)-1]
	if top.n > 0xffff {
		b.fail(errors.New("more than 65535 entries"))
	}
	binary.BigEndian.PutUint16(b.b[top.start+1:], uint16(top.n))
	b.open = b.open[:len(b.open)-1]
}

// entry counts an entry of the open map, and writes its key.
func (b *Builder) entry(key string) {
	if b.count(false) {
		b.text(key)
	}
}

// element counts an element of the open list.
func (b *Builder) element() { b.count(true) }

// count counts an entry of the open container. It fails if that is a list and
// list is false, or the reverse.
func (b *Builder) count(list bool) bool {
	if len(b.open) == 0 {
		b.fail(errors.New("the Builder was already sent"))
		return false
	}
	top := &b.open[len(b.open)-1]
	switch {
	case top.list && !list:
		b.fail(errors.New("a list has no keys; use Add"))
	case !top.list && list:
		b.fail(errors.New("an entry of a map needs a key; use Set"))
	}
	top.n++
	return true
}

func (b *Builder) text(s string) { b.keep(wire.AppendText(b.b, s)) }

func (b *Builder) value(v any) { b.keep(wire.Append(b.b, v)) }

// keep replaces the message by dst, the extended message, unless err is set.
func (b *Builder) keep(dst []byte, err error) {
	if err != nil {
		b.fail(err)
		return
	}
	b.b = dst
}

// fail records the first mistake.
func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Set writes a string.
func (b *Builder) Set(key, text string) *Builder {
	b.entry(key)
	b.text(text)
	return b
}

// SetInt writes an integer.
func (b *Builder) SetInt(key string, i int64) *Builder {
	b.entry(key)
	b.b = wire.AppendInt(b.b, i)
	return b
}

// SetBool writes a bool.
func (b *Builder) SetBool(key string, v bool) *Builder {
	b.entry(key)
	b.b = wire.AppendBool(b.b, v)
	return b
}

// SetValue writes any value; see Map for what it may be.
func (b *Builder) SetValue(key string, v any) *Builder {
	b.entry(key)
	b.value(v)
	return b
}

// Map opens a map.
func (b *Builder) Map(key string) *Builder {
	b.entry(key)
	return b.begin(false)
}

// List opens a list.
func (b *Builder) List(key string) *Builder {
	b.entry(key)
	return b.begin(true)
}

// Add writes a string into a list.
func (b *Builder) Add(text string) *Builder {
	b.element()
	b.text(text)
	return b
}

// AddValue writes any value into a list; see Map for what it may be.
func (b *Builder) AddValue(v any) *Builder {
	b.element()
	b.value(v)
	return b
}

// AddMap opens a map in a list.
func (b *Builder) AddMap() *Builder {
	b.element()
	return b.begin(false)
}

// Controller writes owner into metadata as the controller of the object; see
// Object.ControllerRef. The host does this itself for the children of a result.
func (b *Builder) Controller(owner Object) *Builder {
	b.List("ownerReferences")
	if b.count(true) && b.err == nil {
		b.keep(owner.ControllerRef().AppendMsgpack(b.b))
	}
	return b.End()
}

// Err returns the first mistake, or nil.
func (b *Builder) Err() error { return b.err }

// AppendMsgpack closes all open containers and writes the value.
func (b *Builder) AppendMsgpack(dst []byte) ([]byte, error) {
	for b.err == nil && len(b.open) > 0 {
		b.close()
	}
	if b.err != nil {
		return nil, b.err
	}
	return append(dst, b.b...), nil
}
