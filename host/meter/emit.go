// SPDX-License-Identifier: Apache-2.0

package meter

import "github.com/wasmctl/wasmctl/host/internal/binary"

// edit is a change to the code of a function: it replaces the bytes from at to end. Edits are
// ordered by position.
type edit struct {
	at, end int
	kind    editKind
	op      byte
	arg     uint32 // a point, loop or function
	label   uint32
}

type editKind uint8

const (
	editPoint  editKind = iota // charge
	editHead                   // the head of a loop
	editBranch                 // a branch to the head of a loop
	editFunc                   // a function index
	editCall                   // a call before which the remaining stack is stored
	editBulk                   // a charge by length
	editJump                   // a branch that leads to a later block
)

// edit adds an edit. Without a position, it is inserted at the current one.
func (s *scanner) edit(e edit) {
	if e.end == 0 {
		e.at, e.end = s.r.Pos(), s.r.Pos()
	}
	s.edits = append(s.edits, e)
}

// emitter writes the code of one function.
type emitter struct {
	*scanner
	b []byte
	// stackLocal and scratchLocal are the added locals.
	stackLocal, scratchLocal uint32
}

// emit appends the last scanned function, without its length.
func (s *scanner) emit(dst []byte) []byte {
	e := emitter{scanner: s, b: dst}
	from := e.locals()
	if s.tracked {
		// The entry point is the first edit.
		e.copyTo(&from, s.edits[0].at)
		e.enter(&s.points[0])
		s.points[0].cost = 0
	}
	for i := range s.edits {
		ed := &s.edits[i]
		if s.quiet && ed.kind != editFunc {
			continue
		}
		e.copyTo(&from, ed.at)
		from = ed.end
		e.apply(ed)
	}
	e.copyTo(&from, s.body.code.Left())
	return e.b
}

func (e *emitter) copyTo(from *int, to int) {
	e.b = append(e.b, e.body.code.Rest()[*from:to]...)
	*from = to
}

// locals writes the declaration of locals and returns its end.
func (e *emitter) locals() int {
	r := e.body.code
	groups := r.U32()
	start := r.Pos()
	next := uint32(e.body.locals) //nolint:gosec // at most maxLocals and parameters
	var added []byte
	if e.tracked {
		e.stackLocal = next
		next++
		groups++
		added = append(added, 1, typeI64)
	}
	if e.scratch {
		e.scratchLocal = next
		groups++
		added = append(added, 1, typeI32)
	}
	r = e.body.code
	readLocals(&r)
	e.b = binary.AppendU32(e.b, groups)
	e.b = append(e.b, r.Since(start)...)
	e.b = append(e.b, added...)
	return r.Pos()
}

func (e *emitter) apply(ed *edit) {
	switch ed.kind {
	case editPoint:
		p := &e.points[ed.arg]
		e.chargeAt(p, p.kind == pointChecked)
	case editHead:
		l := &e.loops[ed.arg]
		if l.atHead {
			e.chargeAt(&e.points[l.point], true)
		}
	case editBranch:
		e.branch(ed)
	case editFunc:
		e.b = binary.AppendU32(append(e.b, ed.op), e.m.shift(ed.arg))
	case editCall:
		e.call(ed)
	case editBulk:
		e.bulk(ed)
	case editJump:
		e.op(opBr, ed.label)
	}
}

func (e *emitter) op(op byte, imm uint32) { e.b = binary.AppendU32(append(e.b, op), imm) }

// constant writes an i64.const.
func (e *emitter) constant(v int64) { e.b = binary.AppendS64(append(e.b, opI64Const), v) }

// charge writes fuel -= cost.
func (e *emitter) charge(cost int64) {
	fuel := e.m.fuelGlobal()
	e.op(opGlobalGet, fuel)
	e.constant(cost)
	e.b = append(e.b, opI64Sub)
	e.op(opGlobalSet, fuel)
}

// check writes if fuel < 0 { refill() }.
func (e *emitter) check() {
	e.op(opGlobalGet, e.m.fuelGlobal())
	e.constant(0)
	e.b = append(e.b, opI64LtS, opIf, blockEmpty)
	e.op(opCall, e.m.refillFunc())
	e.b = append(e.b, opEnd)
}

func (e *emitter) chargeAt(p *point, check bool) {
	if p.cost > 0 {
		e.charge(p.cost)
		if check {
			e.check()
		}
	}
}

// enter writes the head of a function that counts its stack. A local has the remaining stack below
// this function, so that nothing has to be restored when it returns, by any path. One branch covers
// both counters.
func (e *emitter) enter(p *point) {
	e.charge(p.cost)
	e.op(opGlobalGet, e.m.fuelGlobal())
	e.op(opGlobalGet, e.m.stackGlobal())
	e.constant(int64(e.body.frame))
	e.b = append(e.b, opI64Sub)
	e.op(opLocalTee, e.stackLocal)
	e.b = append(e.b, opI64Or)
	e.constant(0)
	e.b = append(e.b, opI64LtS, opIf, blockEmpty)
	e.op(opLocalGet, e.stackLocal)
	e.op(opGlobalSet, e.m.stackGlobal())
	e.op(opCall, e.m.refillFunc())
	e.b = append(e.b, opEnd)
}

// branch writes a branch to the head of a loop, which charges the next iteration. The call of the
// refill function follows the branch, outside the path of the iterations that do not need it. That
// keeps the values of the loop in registers.
func (e *emitter) branch(ed *edit) {
	l := &e.loops[ed.arg]
	cost := e.points[l.point].cost
	if l.atHead || cost == 0 { // free code precedes a check of the counter
		e.b = append(e.b, e.body.code.Rest()[ed.at:ed.end]...)
		return
	}
	label := ed.label
	if ed.op == opBrIf {
		e.b = append(e.b, opIf, blockEmpty)
		label++
	}
	e.charge(cost)
	e.op(opGlobalGet, e.m.fuelGlobal())
	e.constant(0)
	e.b = append(e.b, opI64GeS)
	e.op(opBrIf, label)
	e.op(opCall, e.m.refillFunc())
	e.op(opBr, label)
	if ed.op == opBrIf {
		e.b = append(e.b, opEnd)
	}
}

// call writes the code before a call of a function that counts its stack. The replacement of this
// function has the same stack.
func (e *emitter) call(ed *edit) {
	if e.tracked {
		e.op(opLocalGet, e.stackLocal)
		if ed.op == opReturnCall || ed.op == opReturnCallIndirect {
			e.constant(int64(e.body.frame))
			e.b = append(e.b, opI64Add)
		}
		e.op(opGlobalSet, e.m.stackGlobal())
	}
	if ed.end > ed.at {
		e.b = binary.AppendU32(append(e.b, ed.op), e.m.shift(ed.arg))
	}
}

// bulk writes fuel -= length >> shift for the length on the stack.
func (e *emitter) bulk(ed *edit) {
	e.op(opLocalSet, e.scratchLocal)
	e.op(opGlobalGet, e.m.fuelGlobal())
	e.op(opLocalGet, e.scratchLocal)
	e.b = append(e.b, opI64ExtendI32U)
	e.constant(int64(ed.arg))
	e.b = append(e.b, opI64ShrU, opI64Sub)
	e.op(opGlobalSet, e.m.fuelGlobal())
	e.check()
	e.op(opLocalGet, e.scratchLocal)
}
