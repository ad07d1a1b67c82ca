package meter

import "math"

// paths estimates, from above, what wazero's compiler takes to find the loops of
// a function. It asks of each edge between two blocks whether it leads back, and
// for that climbs the tree of dominators from the block that the edge leaves up
// to the function's start. Where each block is reached only through the one
// before, that is the square of the blocks. In Go's functions a br_table leads to
// most blocks, and the tree is flat.
type paths struct {
	open  []meeting
	depth int   // in that tree, of the block that the next instruction is in
	steps int64 // of all climbs
}

// meeting is where the edges to a label meet.
type meeting struct {
	op     byte
	start  int // depth of the block that the label's block begins in
	first  int // least depth of those that go to the end from the first arm of an if
	end    int // least depth of those that go to the end
	armTwo bool
}

// nowhere is the depth of a block that nothing reaches.
const nowhere = math.MaxInt32

func (p *paths) begin() { *p = paths{open: p.open[:0], depth: 1} }

// step follows an instruction. The labels of br_table are branches of their own.
func (p *paths) step(in *instr) {
	switch in.op {
	case opBlock, opIf, opLoop:
		if in.op != opBlock {
			p.climb()
		}
		p.open = append(p.open, meeting{op: in.op, start: p.depth, first: nowhere, end: nowhere})
		if in.op != opBlock {
			p.deeper()
		}
	case opElse:
		p.otherwise()
	case opEnd:
		p.end()
	case opBrIf:
		p.branch(in.a)
		p.climb()
		p.deeper()
	case opBr:
		p.branch(in.a)
		p.depth = nowhere
	case opUnreachable, opReturn, opBrTable, opReturnCall, opReturnCallIndirect:
		p.depth = nowhere
	}
}

// climb counts an edge that leaves this block.
func (p *paths) climb() {
	if p.depth != nowhere {
		p.steps += int64(p.depth)
	}
}

func (p *paths) deeper() {
	if p.depth != nowhere {
		p.depth++
	}
}

// branch counts an edge to a label.
func (p *paths) branch(label uint32) {
	p.climb()
	if i := len(p.open) - 1 - int(label); i >= 0 && p.open[i].op != opLoop {
		p.open[i].end = min(p.open[i].end, p.depth)
	}
}

// otherwise ends the first arm of an if.
func (p *paths) otherwise() {
	if len(p.open) == 0 {
		return // refused later
	}
	p.branch(0)
	m := &p.open[len(p.open)-1]
	m.first, m.end, m.armTwo = m.end, nowhere, true
	p.depth = m.start
	p.deeper()
}

// end goes on behind a block: one step below the lowest that all ways there have
// in common, which is not deeper than any of them.
func (p *paths) end() {
	if len(p.open) == 0 {
		return
	}
	if m := p.open[len(p.open)-1]; m.op == opIf && !m.armTwo {
		p.otherwise()
	}
	p.branch(0)
	m := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	switch {
	case m.op == opLoop:
	case m.first != nowhere && m.end != nowhere:
		p.depth = m.start
	default:
		p.depth = min(m.first, m.end)
	}
	p.deeper()
}
