// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"encoding/binary"
)

// generator makes valid modules of random control flow out of random bytes.
// Each loop and each function uses up some of a global of the module's own, so
// that everything ends, metered or not.
type generator struct {
	src []byte
	// counting makes the module count each instruction before it runs, in the
	// exported global "count": the dumb model of metering.
	counting bool

	code   []byte
	labels []genLabel // innermost last
	ops    int        // instructions made for this function
	// selections are those that are open.
	selections []genSelection
}

// genLabel is the information for a branch to an open block.
type genLabel struct {
	result byte // type of the value it takes, 0 for none
	loop   bool
}

// genSelection is a loop that begins with a branch table of n blocks.
type genSelection struct {
	index        byte // the local that it looks at
	blocks, head int  // head is its label, from outside
}

const (
	i32 = 0x7f
	i64 = 0x7e

	genFuncs  = 5
	genLocals = 6 // three of i32, then three of i64; the first of each is a parameter
	genMask   = 0xfff
	genBudget = 300 // rounds and calls of one run

	// Globals.
	genGas   = 0
	genCount = 1
	genState = 2
)

// Types: 0 is () -> (), then those of functions and loops.
var genTypes = [][2][]byte{
	{{}, {}},
	{{i32, i64}, {i32}}, // of all functions
	{{i32}, {i32}},      // of loops with a parameter
	{{}, {i32}},         // of the export
}

func (g *generator) byte() int {
	if len(g.src) == 0 {
		return 0
	}
	b := g.src[0]
	g.src = g.src[1:]
	return int(b)
}

func (g *generator) pick(n int) int { return g.byte() % n }

// raw writes code that the model does not count.
func (g *generator) raw(b ...byte) { g.code = append(g.code, b...) }

// ins writes an instruction that costs so much.
func (g *generator) ins(cost int64, b ...byte) {
	if g.counting && cost > 0 {
		g.raw(0x23, genCount, 0x42)
		g.raw(sleb(cost)...)
		g.raw(0x7c, 0x24, genCount)
	}
	g.ops++
	g.raw(b...)
}

func sleb(v int64) []byte {
	var out []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(out, c)
		}
		out = append(out, c|0x80)
	}
}

func (g *generator) constant(t byte, v int64) {
	op := byte(0x41)
	if t == i64 {
		op = 0x42
	}
	g.ins(1, append([]byte{op}, sleb(v)...)...)
}

func (g *generator) local(t byte) byte {
	n := g.pick(3)
	if t == i32 {
		return []byte{0, 2, 3}[n]
	}
	return []byte{1, 4, 5}[n]
}

// useGas ends the function when the module has run long enough.
func (g *generator) useGas() {
	g.ins(1, 0x23, genGas)
	g.ins(1, 0x45)       // i32.eqz
	g.ins(1, 0x04, 0x40) // if
	if g.pick(4) == 0 {
		g.ins(1, 0x00) // unreachable
	} else {
		g.constant(i32, 7)
		g.ins(1, 0x0f) // return
	}
	g.ins(0, 0x0b)
	g.ins(1, 0x23, genGas)
	g.constant(i32, 1)
	g.ins(1, 0x6b)
	g.ins(1, 0x24, genGas)
}

// expr writes code that leaves one value.
func (g *generator) expr(t byte, depth int) {
	if depth <= 0 || g.ops > 400 {
		if g.pick(2) == 0 {
			g.constant(t, int64(g.byte()-64))
		} else {
			g.ins(1, 0x20, g.local(t))
		}
		return
	}
	if t == i64 {
		g.expr64(depth - 1)
		return
	}
	switch depth--; g.pick(14) {
	case 0:
		g.expr(i32, depth)
		g.expr(i32, depth)
		g.ins(1, []byte{0x6a, 0x6b, 0x6c, 0x71, 0x72, 0x73, 0x74, 0x48, 0x4d}[g.pick(9)])
	case 1:
		g.expr(i32, depth)
		g.expr(i32, depth)
		g.ins(4, []byte{0x6d, 0x6e, 0x6f, 0x70}[g.pick(4)]) // may trap
	case 2:
		g.expr(i64, depth)
		g.ins(1, []byte{0xa7, 0x50}[g.pick(2)])
	case 3:
		g.address(depth)
		g.ins(1, 0x28, 2, 0)
	case 4:
		g.expr(i32, depth)
		g.ins(1, 0x22, g.local(i32))
	case 5:
		g.block(i32, depth)
	case 6:
		g.ifElse(i32, depth)
	case 7:
		g.expr(i32, depth)
		g.expr(i64, depth)
		g.ins(3, 0x10, byte(g.pick(genFuncs)))
	case 8:
		g.expr(i32, depth)
		g.expr(i64, depth)
		g.expr(i32, 0)
		g.ins(8, 0x11, 1, 0) // call_indirect; may trap
	case 9:
		g.expr(i32, depth)
		g.loop(2, depth)
	case 10:
		g.expr(i32, depth)
		g.expr(i32, depth)
		g.expr(i32, depth)
		g.ins(1, 0x1b)
	case 11:
		g.ins(1, 0x3f, 0)
	case 12:
		g.branchIf(i32, depth)
	case 13:
		g.ins(1, 0x23, genState)
	}
}

func (g *generator) expr64(depth int) {
	switch g.pick(5) {
	case 0:
		g.expr(i64, depth)
		g.expr(i64, depth)
		g.ins(1, []byte{0x7c, 0x7d, 0x7e, 0x83, 0x88}[g.pick(5)])
	case 1:
		g.expr(i32, depth)
		g.ins(1, 0xac)
	case 2:
		g.block(i64, depth)
	case 3:
		g.ifElse(i64, depth)
	case 4:
		g.address(depth)
		g.ins(1, 0x29, 3, 0)
	}
}

// address leaves an address inside memory.
func (g *generator) address(depth int) {
	g.expr(i32, depth)
	g.constant(i32, genMask)
	g.ins(1, 0x71)
}

// function writes the body of one function.
func (g *generator) function() []byte {
	g.code, g.ops = []byte{2, 2, i32, 2, i64}, 0
	g.labels = []genLabel{{result: i32}}
	switch g.pick(4) {
	case 0:
		g.selection(3)
		g.expr(i32, 2)
	case 1, 2:
		g.useGas()
		g.statements(4)
		g.expr(i32, 4)
	default: // small, and the end of all calls
		g.ins(1, 0x20, 0)
		g.ins(1, 0x45)
	}
	g.ins(0, 0x0b)
	return g.code
}

// module writes a module whose export "run" takes nothing.
func (g *generator) module() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, elements ...[]byte) {
		p := binary.AppendUvarint(nil, uint64(len(elements)))
		for _, e := range elements {
			p = append(p, e...)
		}
		out = binary.AppendUvarint(append(out, id), uint64(len(p)))
		out = append(out, p...)
	}
	var types, funcs, bodies [][]byte
	for _, t := range genTypes {
		e := append([]byte{0x60, byte(len(t[0]))}, t[0]...)
		types = append(types, append(append(e, byte(len(t[1]))), t[1]...))
	}
	elements := []byte{0, 0x41, 0, 0x0b, genFuncs}
	for i := range genFuncs {
		funcs = append(funcs, []byte{1})
		elements = append(elements, byte(i))
		body := g.function()
		bodies = append(bodies, append(binary.AppendUvarint(nil, uint64(len(body))), body...))
	}
	funcs = append(funcs, []byte{3})
	g.code = []byte{0}
	g.constant(i32, 5)
	g.constant(i64, -9)
	g.ins(3, 0x10, 0)
	g.ins(0, 0x0b)
	bodies = append(bodies, append([]byte{byte(len(g.code))}, g.code...))
	section(1, types...)
	section(3, funcs...)
	section(4, []byte{0x70, 0, genFuncs + 2}) // two entries stay empty
	section(5, []byte{0, 1})
	section(6, append(append([]byte{i32, 1, 0x41}, sleb(genBudget)...), 0x0b), []byte{i64, 1, 0x42, 0, 0x0b}, []byte{i32, 1, 0x41, 0, 0x0b})
	section(7, append([]byte{3}, "run\x00\x05"...), append([]byte{6}, "memory\x02\x00"...),
		append([]byte{5}, "count\x03\x01"...), append([]byte{5}, "state\x03\x02"...))
	section(9, elements)
	section(10, bodies...)
	return out
}
