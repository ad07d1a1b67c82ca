// SPDX-License-Identifier: Apache-2.0

package meter

// maxOverEstimate is the maximum factor between a call's native stack and its charge. The upper
// bound of a frame is ten times the real frames of Go and Rust guests: charging it completely would
// take most of the stack from honest guests.
const maxOverEstimate = 4

// framer computes an upper bound of the native stack for one call of a function.
//
// wazero gives each value that must survive a call, or that has no register, its own slot in the
// frame, which no other value uses: each result of an instruction, each value that a local is set
// to, and each value of a local at a merge of paths. All of these are counted, as if none were in a
// register.
type framer struct {
	locals []localLife
	loops  []int32 // merges at the end of each outermost loop
	depth  []bool  // for each open block: whether it is a loop
	inLoop int     // open loops
	merges int32   // merges of paths so far
	block  uint32  // counts merges too, and the arms of an if
	values int     // the values created, in slots of 8 bytes
	widest int     // bytes of parameters and results of the widest callee
	vector bool
}

// localLife is the part of a function in which a local may have a value from a merge of paths, in
// numbers of merges.
type localLife struct {
	block       uint32 // the block that set it last
	loop        int32  // the outermost loop that uses it, plus 1
	first, last int32
	used        bool
	exposed     bool // a block reads it without setting it
}

// most returns the upper bound, in bytes. It includes the values saved for the caller, and the
// memory's size and address at each merge.
func (f *framer) most(sig signature, locals localCount) int {
	const fixed = 256
	place := 8
	if f.vector || sig.paramBytes > 8*sig.params || locals.bytes > 8*locals.count {
		place = 16
	}
	return fixed + sig.paramBytes + sig.resultBytes + locals.bytes + f.widest + place*(f.values+f.met()+2*int(f.merges))
}

// begin starts a function with this number of locals.
func (f *framer) begin(locals int) {
	*f = framer{locals: append(f.locals[:0], make([]localLife, locals)...), loops: f.loops[:0], depth: f.depth[:0], block: 1}
}

func (f *framer) meet() {
	f.merges++
	f.block++
}

// step counts an instruction.
func (f *framer) step(in *instr, m *module) {
	if in.imm == immBlock {
		f.typed(m, in.value)
	}
	switch {
	case in.prefix: // each vector is a slot of its own size
		f.vector = f.vector || in.op == opVector
		f.values += 2
	case in.op == opLoop:
		f.depth = append(f.depth, true)
		f.inLoop++
		f.meet()
		if f.inLoop == 1 {
			f.loops = append(f.loops, 0)
		}
	case in.op == opBlock || in.op == opIf:
		f.depth = append(f.depth, false)
	case in.op == opElse:
		f.block++
	case in.op == opEnd:
		f.end()
	case in.imm == immLocal:
		f.local(in)
	case in.imm == immMem:
		f.values += 2 // its position and its value
	case in.class == classCall && int64(in.a) < int64(len(m.funcs)):
		f.call(m, int64(m.funcs[in.a]))
	case in.class == classIndirect:
		f.call(m, int64(in.a))
	case in.op == opGlobalGet:
		f.values += 2
	case in.makesValue():
		f.values++
	}
}

// call counts the results of a callee, and the memory's size and address, which are read again
// after the call.
func (f *framer) call(m *module, t int64) {
	if t < int64(len(m.types)) {
		sig := m.types[t]
		f.values += sig.resultBytes/8 + 3
		f.widest = max(f.widest, sig.paramBytes+sig.resultBytes)
	}
}

// typed counts the parameters and results of a block.
func (f *framer) typed(m *module, t int64) {
	if t >= 0 && t < int64(len(m.types)) {
		f.values += (m.types[t].paramBytes + m.types[t].resultBytes) / 8
	} else {
		f.values += 2
	}
}

func (f *framer) end() {
	n := len(f.depth) - 1
	if n < 0 {
		return
	}
	loop := f.depth[n]
	f.depth = f.depth[:n]
	if loop {
		if f.inLoop--; f.inLoop == 0 {
			f.loops[len(f.loops)-1] = f.merges
		}
		return
	}
	f.meet()
}

func (f *framer) local(in *instr) {
	if int64(in.a) >= int64(len(f.locals)) {
		return // refused later
	}
	l := &f.locals[in.a]
	if !l.used {
		l.used, l.first = true, f.merges
	}
	l.last = f.merges
	if f.inLoop > 0 {
		l.loop = int32(len(f.loops)) //nolint:gosec // fewer than bytes
	}
	if in.op == opLocalGet {
		l.exposed = l.exposed || l.block != f.block
		return
	}
	l.block = f.block
	f.values++
}

// makesValue reports whether an instruction without special treatment produces a value: constants,
// arithmetic and references, select, and the results of memory.size, memory.grow and table.get.
func (in *instr) makesValue() bool {
	return in.op >= opI32Const || in.op == 0x1b || in.op == 0x1c || in.op == 0x25 || in.op == 0x3f || in.op == 0x40
}

// met returns the number of values that locals have at merges of paths.
func (f *framer) met() int {
	n := 0
	for i := range f.locals {
		l := &f.locals[i]
		if !l.exposed {
			continue
		}
		if l.loop > 0 {
			l.last = max(l.last, f.loops[l.loop-1])
		}
		n += int(l.last - l.first)
	}
	return n
}
