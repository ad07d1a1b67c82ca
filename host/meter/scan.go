// SPDX-License-Identifier: Apache-2.0

package meter

import "github.com/wasmctl/wasmctl/host/internal/binary"

// frame is one open block.
type frame struct {
	kind byte
	// outer is the current point at the beginning of the block. It is -1 in unreachable code.
	outer int32
	// loop is the index of a loop, or of the one that a block begins, or -1.
	loop int32
	// targeted is set if a branch leads to the block's end.
	targeted bool
	// passed is set if the end of the first arm of an if is reachable.
	passed bool
	// out is the outermost open block to which a branch from inside leads.
	out int
}

// scanner finds the edits for one function. It is reused for all functions, to reuse its memory.
type scanner struct {
	m    *module
	body *body
	fn   int // index of the function
	r    binary.Reader

	points []point
	loops  []loop
	frames []frame
	edits  []edit
	cur    int32 // the current point, or -1 in unreachable code
	work   int64 // of all points so far
	// quiet is set in a function that is charged to its callers.
	quiet bool
	// tracked is set if the function counts its stack.
	tracked bool
	// scratch is set if the function needs a local for a length.
	scratch bool
	recent  recent
	targets []int32 // the blocks in branch tables of loops
}

// scan reads one function.
func (s *scanner) scan(i int) error {
	b := &s.m.bodies[i]
	s.body, s.fn, s.r = b, s.m.imported+i, b.code
	s.points, s.loops, s.frames, s.edits = s.points[:0], s.loops[:0], s.frames[:0], s.edits[:0]
	s.recent, s.targets, s.work = nothing, s.targets[:0], 0
	s.quiet, s.tracked, s.scratch = s.m.isTiny(b), !s.m.isFlat(b, 0), false
	readLocals(&s.r)
	entry := pointPlain
	if s.tracked || !s.m.isLeaf(b) {
		entry = pointChecked
	}
	s.cur = -1
	s.cur = s.addPoint(entry)
	s.frames = append(s.frames, frame{kind: opBlock, outer: s.cur, loop: -1})
	var in instr
	for s.r.Left() > 0 && len(s.frames) > 0 {
		s.boundWork()
		decode(&s.r, &in, s.fn)
		if s.r.OK() {
			s.step(&in)
			s.follow(&in)
		}
	}
	if len(s.frames) > 0 {
		s.r.Fail(binary.ErrTruncated)
	}
	if err := s.r.End(); err != nil {
		return err
	}
	s.settle()
	return nil
}

func (s *scanner) step(in *instr) {
	switch in.class {
	case classBulk, classBulkTable:
		s.bulk(in, s.recent.constant)
	case classCall:
		s.call(in)
	case classIndirect:
		s.callIndirect(in)
	default:
		s.charge(in.class.cost(), 0)
	}
	if in.prefix {
		return
	}
	switch in.op {
	case opBlock, opLoop, opIf:
		s.open(in)
	case opElse:
		s.orElse()
	case opEnd:
		s.end()
	case opBr, opBrIf:
		s.branch(in)
	case opBrTable:
		s.branchTable(in)
	case opReturn, opReturnCall, opReturnCallIndirect:
		s.leave(0)
		s.cur = -1
	case opUnreachable:
		s.cur = -1
	case opGlobalGet, opGlobalSet:
		s.m.checkGlobal(&s.r, in.a)
	case opRefFunc:
		s.m.checkFunc(&s.r, in.a)
		s.edit(edit{kind: editFunc, at: in.at, end: s.r.Pos(), op: in.op, arg: in.a})
	default:
		if in.imm == immLocal && int64(in.a) >= int64(s.body.locals) {
			s.r.Failf("local %d does not exist", in.a)
		}
	}
}

func (s *scanner) open(in *instr) {
	if s.m.checkType(&s.r, in.value); !s.r.OK() {
		return
	}
	f := frame{kind: in.op, outer: s.cur, out: len(s.frames), loop: s.recent.opening}
	if in.op == opLoop {
		f.loop = int32(len(s.loops)) //nolint:gosec // fewer than bytes
		l := loop{point: -1, atHead: in.value >= 0 && s.m.types[in.value].params > 0}
		if s.cur >= 0 {
			s.cur = s.addPoint(pointLoop)
			l.point = s.cur
			s.edits[len(s.edits)-1].kind, s.edits[len(s.edits)-1].arg = editHead, uint32(f.loop) //nolint:gosec // an index
		}
		s.loops = append(s.loops, l)
	}
	s.frames = append(s.frames, f)
	if in.op == opIf {
		s.begin(s.cur)
	}
}

func (s *scanner) orElse() {
	f := &s.frames[len(s.frames)-1]
	if f.kind != opIf {
		s.r.Failf("else without if")
		return
	}
	f.kind, f.passed = opElse, s.cur >= 0
	s.begin(f.outer)
}

// end closes the innermost block. The code after a block runs whenever the block was entered,
// unless a branch inside leads further out. Then it is charged separately.
func (s *scanner) end() {
	n := len(s.frames) - 1
	f := s.frames[n]
	s.frames = s.frames[:n]
	if n == 0 {
		return
	}
	s.frames[n-1].out = min(s.frames[n-1].out, f.out)
	reached := f.outer >= 0 && (s.cur >= 0 || f.targeted || f.passed || f.kind == opIf)
	switch {
	case !reached:
		s.cur = -1
	case f.out >= n && s.work <= maxWork:
		s.cur = f.outer
	case f.out >= n || f.targeted || f.kind != opBlock:
		s.begin(f.outer)
	}
}

// leave records a branch to the end or head of an open block.
func (s *scanner) leave(target int) {
	f := &s.frames[len(s.frames)-1]
	f.out = min(f.out, target)
}

// target returns the open block of a label.
func (s *scanner) target(label uint32) int {
	if int64(label) >= int64(len(s.frames)) {
		s.r.Failf("label %d does not exist", label)
		return 0
	}
	return len(s.frames) - 1 - int(label)
}

func (s *scanner) branch(in *instr) {
	t := s.target(in.a)
	if s.cur < 0 {
		return
	}
	t = s.onward(in, t)
	f := &s.frames[t]
	if f.kind == opLoop {
		s.loops[f.loop].back++
		s.edit(edit{kind: editBranch, at: in.at, end: s.r.Pos(), op: in.op, arg: uint32(f.loop), label: in.a}) //nolint:gosec // an index
	} else {
		f.targeted = true
	}
	s.leave(t)
	if in.op == opBr {
		s.cur = -1
		return
	}
	s.begin(s.cur)
}

func (s *scanner) branchTable(in *instr) {
	head := s.selects(in)
	for range int64(in.a) + 1 {
		t := s.target(s.r.U32())
		if !s.r.OK() {
			return
		}
		if s.cur < 0 {
			continue
		}
		if head {
			s.targets = append(s.targets, int32(t)) //nolint:gosec // fewer than bytes
		}
		if f := &s.frames[t]; f.kind == opLoop {
			s.loops[f.loop].atHead = true
		} else {
			f.targeted = true
		}
		s.leave(t)
	}
	s.cur = -1
}

func (s *scanner) call(in *instr) {
	if int64(in.a) < int64(s.m.imported) {
		s.edit(edit{kind: editFunc, at: in.at, end: s.r.Pos(), op: in.op, arg: in.a})
		s.charge(costHost, 0)
		return
	}
	callee := s.m.body(in.a)
	kind := editFunc
	if s.tracked && !s.m.isFlat(callee, 0) {
		kind = editCall
	}
	s.edit(edit{kind: kind, at: in.at, end: s.r.Pos(), op: in.op, arg: in.a})
	switch {
	case s.m.isTiny(callee):
		s.charge(costCall+callee.cost, 0)
	case s.m.isLeaf(callee):
		s.charge(costCall, callee.work)
	default:
		s.charge(costCall, 0)
	}
}

func (s *scanner) callIndirect(in *instr) {
	s.m.checkType(&s.r, int64(in.a))
	s.edit(edit{kind: editCall, at: in.at, end: in.at, op: in.op})
	s.charge(costIndirect, maxLeaf)
}

// bulk charges an instruction for the length that is its last operand. If the length is constant,
// it is charged in advance.
func (s *scanner) bulk(in *instr, length int64) {
	s.charge(costBulk, 0)
	shift := 4 // one unit of fuel pays for this number of bytes or entries, as a power of two
	if in.class == classBulkTable {
		shift = 1
	}
	switch {
	case length >= 0:
		s.charge(length>>shift, 0)
	case s.cur >= 0 && !s.quiet:
		s.scratch = true
		s.edit(edit{kind: editBulk, at: in.at, end: in.at, arg: uint32(shift)}) //nolint:gosec // 1 or 4
	}
}
