package meter

// point is a place where the counter is charged. The charge of a point is for
// the code that runs whenever the point is passed: it lies behind the point
// and no branch leads around it.
type point struct {
	cost int64
	// work is cost, and what callees may do without looking at the counter.
	work int64
	// spare is the part of cost that is for code that may not run.
	spare int64
	// parent is the point that is always passed before this one, once or more
	// often; -1 where there is none to charge in advance.
	parent int32
	kind   pointKind
}

type pointKind uint8

const (
	// pointPlain charges only.
	pointPlain pointKind = iota
	// pointChecked also looks whether the counter has run out.
	pointChecked
	// pointLoop is the head of a loop.
	pointLoop
)

// loop is one loop of a function.
type loop struct {
	point int32
	// back counts the branches to its head.
	back int
	// atHead is set where the head looks at the counter: where the branches
	// back cannot do it.
	atHead bool
}

// frame is one open block.
type frame struct {
	kind byte
	// outer is the point that was current where the block began; -1 in code
	// that is never reached.
	outer int32
	loop  int32 // of a loop, its index
	// targeted is set if a branch leads to the block's end.
	targeted bool
	// passed is set if the end of the first arm of an if is reached.
	passed bool
	// out is the outermost open block that a branch from inside leads to.
	out int
}

// maxWork bounds what runs between two looks at the counter in straight code.
const maxWork = 1 << 17

// scanner finds where the metering of one function goes. It is used for one
// function after the other, to keep its memory.
type scanner struct {
	m    *module
	cfg  *Config
	body *body
	fn   int // index of the function
	r    reader

	points []point
	loops  []loop
	frames []frame
	edits  []edit
	cur    int32 // current point, or -1 in code that is never reached
	// quiet is set in a function that is charged to who calls it.
	quiet bool
	// tracked is set if the function counts its stack.
	tracked bool
	// scratch is set if the function needs a local to hold a length.
	scratch bool
	// lastConst is the value of the i32.const just before, or -1.
	lastConst int64
}

// scan reads one function.
func (s *scanner) scan(i int) error {
	b := &s.m.bodies[i]
	s.body, s.fn, s.r = b, s.m.imported+i, b.code
	s.points, s.loops, s.frames, s.edits = s.points[:0], s.loops[:0], s.frames[:0], s.edits[:0]
	s.quiet, s.tracked, s.scratch, s.lastConst = s.m.isTiny(b), !s.m.isFlat(b, 0), false, -1
	readLocals(&s.r)
	entry := pointPlain
	if s.tracked || !s.m.isLeaf(b) {
		entry = pointChecked
	}
	s.cur = -1
	s.cur = s.addPoint(entry)
	s.frames = append(s.frames, frame{kind: opBlock, outer: s.cur})
	var in instr
	for s.r.left() > 0 && len(s.frames) > 0 {
		decode(&s.r, &in, s.fn)
		if s.r.err == nil {
			s.step(&in)
		}
	}
	if len(s.frames) > 0 {
		s.r.fail(errTruncated)
	}
	if err := s.r.end(); err != nil {
		return err
	}
	s.settle()
	return nil
}

// addPoint adds a point here and returns its number.
func (s *scanner) addPoint(kind pointKind) int32 {
	n := int32(len(s.points)) //nolint:gosec // fewer than bytes
	s.points = append(s.points, point{parent: s.cur, kind: kind})
	s.edit(edit{kind: editPoint, arg: uint32(n)}) //nolint:gosec // as above
	return n
}

// begin makes a new current point, in code that runs only if outer was passed.
func (s *scanner) begin(outer int32) {
	if s.cur = outer; outer >= 0 {
		s.cur = s.addPoint(pointPlain)
	}
}

func (s *scanner) charge(cost, work int64) {
	if s.cur < 0 {
		return
	}
	p := &s.points[s.cur]
	p.cost += cost
	if p.work += cost + work; p.work > maxWork {
		s.cur = s.addPoint(pointChecked)
		s.points[s.cur].parent = -1 // its charge is its own
	}
}

func (s *scanner) step(in *instr) {
	lastConst := s.lastConst
	s.lastConst = -1
	switch in.class {
	case classBulk, classBulkTable:
		s.bulk(in, lastConst)
	case classCall:
		s.call(in)
	case classIndirect:
		s.callIndirect(in)
	default:
		s.charge(int64(s.cfg.Costs.cost(in.class)), 0)
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
		s.edit(edit{kind: editFunc, at: in.at, end: s.r.pos, op: in.op, arg: in.a})
	case opI32Const:
		s.lastConst = int64(uint32(in.value)) //nolint:gosec // bits
	default:
		if in.imm == immLocal && int64(in.a) >= int64(s.body.locals) {
			s.r.failf("local %d does not exist", in.a)
		}
	}
}

func (s *scanner) checkType(t int64) {
	if t >= int64(len(s.m.types)) {
		s.r.failf("type %d does not exist", t)
	}
}

func (s *scanner) open(in *instr) {
	if s.checkType(in.value); s.r.err != nil {
		return
	}
	f := frame{kind: in.op, outer: s.cur, out: len(s.frames)}
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
		s.r.failf("else without if")
		return
	}
	f.kind, f.passed = opElse, s.cur >= 0
	s.begin(f.outer)
}

// end closes the innermost block. What follows runs whenever the block was
// entered, unless a branch inside leads further out: then it is charged on its
// own.
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
	case f.out >= n:
		s.cur = f.outer
	case f.targeted || f.kind != opBlock:
		s.begin(f.outer)
	}
}

// leave notes a branch to the end or head of an open block.
func (s *scanner) leave(target int) {
	f := &s.frames[len(s.frames)-1]
	f.out = min(f.out, target)
}

// target returns the open block that a label means.
func (s *scanner) target(label uint32) int {
	if int64(label) >= int64(len(s.frames)) {
		s.r.failf("label %d does not exist", label)
		return 0
	}
	return len(s.frames) - 1 - int(label)
}

func (s *scanner) branch(in *instr) {
	t := s.target(in.a)
	if s.cur < 0 {
		return
	}
	f := &s.frames[t]
	if f.kind == opLoop {
		s.loops[f.loop].back++
		s.edit(edit{kind: editBranch, at: in.at, end: s.r.pos, op: in.op, arg: uint32(f.loop), label: in.a}) //nolint:gosec // an index
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
	for range int64(in.a) + 1 {
		t := s.target(s.r.u32())
		if s.r.err != nil {
			return
		}
		if s.cur < 0 {
			continue
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
	costs := &s.cfg.Costs
	if int64(in.a) < int64(s.m.imported) {
		s.edit(edit{kind: editFunc, at: in.at, end: s.r.pos, op: in.op, arg: in.a})
		s.charge(int64(costs.HostCall), 0)
		return
	}
	callee := s.m.body(in.a)
	kind := editFunc
	if s.tracked && !s.m.isFlat(callee, 0) {
		kind = editCall
	}
	s.edit(edit{kind: kind, at: in.at, end: s.r.pos, op: in.op, arg: in.a})
	switch {
	case s.m.isTiny(callee):
		s.charge(int64(costs.Call)+callee.cost, 0)
	case s.m.isLeaf(callee):
		s.charge(int64(costs.Call), callee.work)
	default:
		s.charge(int64(costs.Call), 0)
	}
}

func (s *scanner) callIndirect(in *instr) {
	s.checkType(int64(in.a))
	s.edit(edit{kind: editCall, at: in.at, end: in.at, op: in.op})
	s.charge(int64(s.cfg.Costs.CallIndirect), maxLeaf)
}

// bulk charges an instruction for the length that is its last operand, where
// that is a constant in advance.
func (s *scanner) bulk(in *instr, length int64) {
	s.charge(int64(s.cfg.Costs.Bulk), 0)
	shift := bulkShift(in.class)
	switch {
	case length >= 0:
		s.charge(length>>shift, 0)
	case s.cur >= 0 && !s.quiet:
		s.scratch = true
		s.edit(edit{kind: editBulk, at: in.at, end: in.at, arg: uint32(shift)}) //nolint:gosec // 1 or 4
	}
}

// bulkShift says how many bytes or entries one unit of fuel pays for, as a
// power of two.
func bulkShift(c class) int {
	if c == classBulkTable {
		return 1
	}
	return 4
}

// settle decides how loops are metered and how much each point charges.
// Points come in the order of the code, so a parent is final only after all
// that name it.
func (s *scanner) settle() {
	for i := range s.loops {
		l := &s.loops[i]
		if l.back > maxBranches {
			l.atHead = true
		}
		if l.atHead && l.point >= 0 {
			s.points[l.point].kind = pointChecked
		}
	}
	for i := len(s.points) - 1; i >= 0; i-- {
		p := &s.points[i]
		if p.parent < 0 {
			continue
		}
		parent := &s.points[p.parent]
		switch {
		case p.kind == pointLoop:
			// The branches back charge the rounds, but not the first.
			parent.cost += p.cost
		case p.kind == pointPlain && parent.spare+p.cost <= s.m.slack:
			parent.cost += p.cost
			parent.spare += p.cost
			p.cost = 0
		}
	}
}

// maxBranches is how many branches back a loop may have that look at the
// counter; a loop with more does it at its head.
const maxBranches = 4
