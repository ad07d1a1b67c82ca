// SPDX-License-Identifier: Apache-2.0

package meter

import "math"

// paths computes an upper bound of the work of wazero's compiler to find the loops of a function.
// For each edge between two blocks, the compiler checks whether the edge leads back: it climbs the
// dominator tree from the block of the edge to the function's start. If each block is reached only
// through the previous one, that is quadratic in the blocks. In Go's functions, a br_table leads to
// most blocks, and the tree is flat.
type paths struct {
	open  []meeting
	depth int   // the depth in that tree of the next instruction's block
	steps int64 // of all climbs
}

// meeting is the place where the edges to a label meet.
type meeting struct {
	op     byte
	start  int // the depth of the block in which the label's block begins
	first  int // the least depth of the edges to the end from the first arm of an if
	end    int // the least depth of the edges to the end
	armTwo bool
}

// nowhere is the depth of an unreachable block.
const nowhere = math.MaxInt32

func (p *paths) begin() { *p = paths{open: p.open[:0], depth: 1} }

// step follows an instruction. The labels of br_table count as separate branches.
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

// end continues after a block. Its depth is one more than that of the deepest block common to all
// paths, which is not deeper than any of them.
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
