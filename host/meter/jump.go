// SPDX-License-Identifier: Apache-2.0

package meter

// recent describes the preceding instructions.
//
// It finds branches to the head of a loop that only selects the next block by a local. Compilers
// without structured control flow, like that of Go, make a function such a loop. If the local was
// just set to a constant, the next block is known. If that block is ahead, the branch can lead
// there directly: it is shorter, and a forward branch needs no check of the counter.
type recent struct {
	// constant is the value of an i32.const, or -1.
	constant int64
	// opening is the loop of which only block starts were read, or -1. selecting is the same after
	// a local was read.
	opening, selecting int32
	// local was just read, or set to value if that is not -1.
	local uint32
	value int64
}

var nothing = recent{constant: -1, opening: -1, selecting: -1, value: -1}

// follow records an instruction.
func (s *scanner) follow(in *instr) {
	was := s.recent
	s.recent = nothing
	switch {
	case in.prefix, !s.r.OK():
	case in.op == opI32Const:
		s.recent.constant = int64(uint32(in.value)) //nolint:gosec // bits
	case in.op == opLocalSet:
		s.recent.local, s.recent.value = in.a, was.constant
	case in.op == opLocalGet:
		s.recent.local, s.recent.selecting = in.a, was.opening
	case in.op == opBlock && in.value == blockVoid:
		s.recent.opening = was.opening
	case in.op == opLoop && s.cur >= 0 && !s.loops[len(s.loops)-1].atHead: // a branch to it has no parameters
		s.recent.opening = int32(len(s.loops)) - 1 //nolint:gosec // fewer than bytes
	}
}

// selects reports whether a loop begins with only a branch table.
func (s *scanner) selects(in *instr) bool {
	if s.recent.selecting < 0 {
		return false
	}
	l := &s.loops[s.recent.selecting]
	l.local, l.from, l.to = s.recent.local, len(s.targets), len(s.targets)+int(in.a)+1
	return true
}

// onward returns the block to which a branch to an open block leads. That is another block if the
// branch leads to the head of a loop that selects a block ahead. The branch is charged for the path
// through the head.
func (s *scanner) onward(in *instr, t int) int {
	i := s.frames[t].loop
	if in.op != opBr || s.frames[t].kind != opLoop || s.recent.value < 0 {
		return t
	}
	l := &s.loops[i]
	if l.from == l.to || l.local != s.recent.local {
		return t
	}
	on := int(s.targets[min(int64(l.from)+s.recent.value, int64(l.to)-1)])
	if on >= len(s.frames) || s.frames[on].kind != opBlock || s.frames[on].loop != i {
		return t // behind, or not a block at the beginning of the loop
	}
	const head = 2 // the instructions of a branch table by a local
	s.charge(head*costPlain, 0)
	label := uint32(len(s.frames) - 1 - on) //nolint:gosec // an index
	s.edit(edit{kind: editJump, at: in.at, end: s.r.Pos(), label: label})
	return on
}
