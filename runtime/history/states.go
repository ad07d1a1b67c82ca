package history

import (
	"container/list"

	"github.com/wasmctl/wasmctl/abi"
)

// ident names an object; resource is empty for the kind that is reconciled.
type ident struct {
	resource string
	key      abi.Key
}

// states are the last known states of objects, as packed bytes, those used last
// at the front. They are not safe for concurrent use.
type states struct {
	limit, size int // bytes
	byIdent     map[ident]*list.Element
	order       *list.List // of *state
}

type state struct {
	ident  ident
	packed []byte
}

// stateSize is what a state takes beside its bytes and names.
const stateSize = 250

func newStates(limit int) states {
	return states{limit: limit, byIdent: map[ident]*list.Element{}, order: list.New()}
}

func (s *state) cost() int {
	return stateSize + len(s.packed) + len(s.ident.resource) + len(s.ident.key.Namespace) + len(s.ident.key.Name)
}

// get returns the last known state; nil if there is none.
func (t *states) get(id ident) *state {
	if e := t.byIdent[id]; e != nil {
		return e.Value.(*state)
	}
	return nil
}

// put replaces the last known state, and forgets others where there is no room.
func (t *states) put(id ident, packed []byte) {
	e := t.byIdent[id]
	if e == nil {
		e = t.order.PushFront(&state{ident: id})
		t.byIdent[id] = e
		t.size += e.Value.(*state).cost()
	} else {
		t.order.MoveToFront(e)
	}
	s := e.Value.(*state)
	t.size += len(packed) - len(s.packed)
	s.packed = packed
	for t.size > t.limit && t.order.Len() > 0 {
		t.forget(t.order.Back().Value.(*state).ident)
	}
}

func (t *states) forget(id ident) {
	e := t.byIdent[id]
	if e == nil {
		return
	}
	t.size -= e.Value.(*state).cost()
	t.order.Remove(e)
	delete(t.byIdent, id)
}
