// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"slices"

	"github.com/wasmctl/wasmctl/host/internal/binary"
)

// body is one function that the module defines, with the results of the survey.
type body struct {
	code    binary.Reader // locals and instructions
	callees []uint32
	// indirect is set if the function calls through a table.
	indirect bool
	// loops is set if the function has a loop, bulk if it has a bulk
	// instruction.
	loops, bulk bool
	// locals counts parameters and locals. frame estimates the native stack of one call, in bytes.
	locals, frame int
	// cost is the total cost of all instructions, without the charges of callees. work is at least
	// cost and the charges for callees that are not charged separately.
	cost, work int64

	leaf, flat verdict
	// height is the maximum stack of a flat function and its callees.
	height int
}

// verdict is a cached answer.
type verdict uint8

const (
	notAsked verdict = iota
	asking           // in progress: a second question means a cycle
	no
	yes
)

func verdictOf(b bool) verdict {
	if b {
		return yes
	}
	return no
}

const (
	// maxLeaf is the maximum cost, without loops, of a function that does not
	// check the counter when it starts.
	maxLeaf = 1 << 10
	// maxFlat is the maximum stack, in bytes, of a function and its callees that is not counted.
	// maxFlatDepth is the maximum call depth of the search for such functions.
	maxFlat      = 16 << 10
	maxFlatDepth = 32
)

// Limits on compiling one function, which cannot be interrupted in wazero. Each step of paths takes
// it 3 to 18 ns on a busy machine, in chains of blocks, of loops and of branches. So maxSteps is
// about ten seconds: the time for 20,000 blocks of which each is reached through the previous one.
// A map of a Go program has 60,000 in its init, and takes two seconds, because a br_table leads to
// each.
const (
	maxControl = 200_000       // blocks and branches
	maxCarried = 1_000_000_000 // blocks and branches, times the locals that each may carry
	maxSteps   = 700_000_000
)

// survey reads all code once to find what the metering of a function needs to know about its
// callees.
func (m *module) survey() error {
	at := slices.IndexFunc(m.sections, func(s binary.Section) bool { return s.ID == binary.SectionCode })
	defined := len(m.funcs) - m.imported
	if at < 0 {
		if defined > 0 {
			return binary.Errorf(len(m.wasm), "%d functions have no code", defined)
		}
		return nil
	}
	code := &m.sections[at]
	r := code.Body
	if n := r.Count(); n != defined {
		return binary.Errorf(code.Start, "%d functions are declared, %d have code", defined, n)
	}
	m.bodies = make([]body, defined)
	for i := range m.bodies {
		m.bodies[i].code = r.Block()
		if err := m.surveyBody(i); err != nil {
			return err
		}
	}
	return r.End()
}

func (m *module) signature(fn uint32) signature { return m.types[m.funcs[fn]] }

func (m *module) surveyBody(i int) error {
	b := &m.bodies[i]
	fn := m.imported + i
	sig := m.signature(uint32(fn)) //nolint:gosec // counts fit
	r := b.code
	locals := readLocals(&r)
	b.locals = sig.params + locals.count
	var in instr
	f := &m.framer
	f.begin(b.locals)
	m.paths.begin()
	var calls, sets, control, instrs int
	for r.Left() > 0 {
		decode(&r, &in, fn)
		instrs++
		m.otherwise = m.otherwise || in.changesOthers()
		m.segments = m.segments || in.usesData()
		f.step(&in, m)
		if in.isControl() {
			control++
		}
		b.cost += in.class.cost()
		b.loops = b.loops || in.op == opLoop
		b.bulk = b.bulk || in.class == classBulk || in.class == classBulkTable
		switch in.imm {
		case immLabels:
			for n := int64(in.a) + 1; n > 0 && r.OK(); n-- {
				m.paths.branch(r.U32())
			}
		case immFunc:
			m.checkFunc(&r, in.a)
			if in.class == classCall && r.OK() {
				calls++
				m.surveyCall(b, in.a)
			}
		case immIndirect:
			calls++
			b.indirect = true
		case immLocal:
			if in.op != opLocalGet {
				sets++
			}
		default:
		}
		m.paths.step(&in)
	}
	b.work = b.cost + int64(calls)*m.tinyCost()
	b.frame = max(frameBytes(sig, locals.bytes, calls, sets), f.most(sig, locals)/maxOverEstimate)
	m.work += compileWork(int64(instrs), int64(b.locals), int64(control), int64(calls), int64(m.widest), m.paths.steps)
	switch carried := int64(control) * int64(b.locals); {
	case control > maxControl:
		r.Failf("function %d has %d blocks and branches, the limit is %d: split it", fn, control, maxControl)
	case carried > maxCarried:
		r.Failf("function %d has %d blocks and branches and %d locals, the limit of their product is %d: split it", fn, control, b.locals, maxCarried)
	case m.paths.steps > maxSteps:
		r.Failf("function %d has %d blocks and branches that follow each other, too many to compile: split it", fn, control)
	}
	return r.Err()
}

// compileWork estimates the work of compiling a function. Each branch may carry each local, each
// block and call may carry the values of the widest type, and wazero climbs from block to block.
func compileWork(instrs, locals, control, calls, widest, steps int64) int64 {
	return instrs + locals + control*locals + (control+calls)*widest + steps/64
}

// isControl reports whether an instruction begins a block or branches.
func (in *instr) isControl() bool {
	return in.op >= opBlock && in.op <= opElse || in.op >= opBr && in.op <= opBrTable
}

func (m *module) surveyCall(b *body, callee uint32) {
	if int64(callee) < int64(m.imported) {
		b.cost += costHost
		return
	}
	b.cost += costCall
	if n := len(b.callees); n == 0 || b.callees[n-1] != callee {
		b.callees = append(b.callees, callee)
	}
}

// frameBytes estimates the native stack of a call if wazero keeps most values in registers: a fixed
// part, a slot for each parameter, result and local, and slots for the values that must survive a
// call or a branch. The frames of Go and Rust guests are about that large, and few are more than
// twice as large.
func frameBytes(sig signature, locals, calls, sets int) int {
	return 64 + sig.paramBytes + sig.resultBytes + locals + 8*(calls+sets/2)
}

type localCount struct{ count, bytes int }

// maxLocals is the maximum number of locals of one function, as in web browsers.
const maxLocals = 50_000

// readLocals reads the declaration of locals.
func readLocals(r *binary.Reader) (l localCount) {
	for n := r.Count(); n > 0 && r.OK(); n-- {
		c := r.U32()
		if l.count += int(min(c, maxLocals+1)); l.count > maxLocals {
			r.Failf("function has more than %d locals", maxLocals)
			return localCount{}
		}
		l.bytes += int(c) * slotBytes([]byte{r.Byte()})
	}
	return l
}

func (m *module) body(fn uint32) *body { return &m.bodies[int(fn)-m.imported] }

// tinyCost is the maximum cost of a function that is charged to its callers and not instrumented.
func (m *module) tinyCost() int64 { return 2 * m.slack }

// isTiny reports whether a function is short, has no loops and calls nothing.
func (m *module) isTiny(b *body) bool {
	return !b.loops && !b.bulk && !b.indirect && len(b.callees) == 0 && b.cost <= m.tinyCost()
}

// isLeaf reports whether a function is short and calls no function that is charged separately. Its
// length and its own loops limit its work, so it need not check the counter when it starts.
func (m *module) isLeaf(b *body) bool {
	if b.leaf == notAsked {
		ok := !b.indirect && !b.bulk && b.work <= maxLeaf
		for _, c := range b.callees {
			ok = ok && m.isTiny(m.body(c))
		}
		b.leaf = verdictOf(ok)
	}
	return b.leaf == yes
}

// isFlat reports whether a function cannot be part of a recursion and takes little stack with all
// its callees, so that its stack need not be counted.
func (m *module) isFlat(b *body, depth int) bool {
	if b.flat != notAsked {
		return b.flat == yes
	}
	b.flat = asking
	ok := !b.indirect && depth < maxFlatDepth
	for _, c := range b.callees {
		if !ok {
			break
		}
		callee := m.body(c)
		ok = m.isFlat(callee, depth+1)
		b.height = max(b.height, callee.height)
	}
	b.height += b.frame
	ok = ok && b.height <= maxFlat
	b.flat = verdictOf(ok)
	return ok
}
