// SPDX-License-Identifier: Apache-2.0

package meter_test

func (g *generator) block(result byte, depth int) {
	bt := result
	if result == 0 {
		bt = 0x40
	}
	g.ins(0, 0x02, bt)
	g.labels = append(g.labels, genLabel{result: result})
	g.statements(depth)
	g.finish(result, depth)
	g.close()
}

func (g *generator) close() {
	g.labels = g.labels[:len(g.labels)-1]
	g.ins(0, 0x0b)
}

// finish writes the end of a block: its value or, sometimes, a branch that leaves it.
func (g *generator) finish(result byte, depth int) {
	switch {
	case g.pick(4) == 0:
		g.jump(depth)
	case result != 0:
		g.expr(result, depth)
	}
}

// jump writes an instruction that does not go on.
func (g *generator) jump(depth int) {
	switch label, ok := g.target(0); {
	case ok && g.pick(4) > 0:
		g.ins(1, 0x0c, label)
	case g.pick(4) == 0:
		g.ins(1, 0x00)
	default:
		g.expr(i32, depth)
		g.ins(1, 0x0f)
	}
	if g.pick(2) == 0 { // code that is never reached
		g.constant(i32, 3)
		g.ins(1, 0x21, 0)
	}
}

func (g *generator) ifElse(result byte, depth int) {
	bt := result
	if result == 0 {
		bt = 0x40
	}
	g.expr(i32, depth)
	g.ins(1, 0x04, bt)
	g.labels = append(g.labels, genLabel{result: result})
	g.statements(depth)
	g.finish(result, depth)
	if result != 0 || g.pick(2) == 0 {
		g.ins(0, 0x05)
		g.statements(depth)
		g.finish(result, depth)
	}
	g.close()
}

// loop writes a loop without parameters, of type 0, or with one, of type 2.
func (g *generator) loop(typ byte, depth int) {
	bt, l := byte(0x40), genLabel{loop: true}
	if typ == 2 {
		bt, l.result = 2, i32
	}
	g.ins(0, 0x03, bt)
	g.labels = append(g.labels, l)
	if typ == 2 {
		g.ins(1, 0x21, 0)
	}
	g.useGas()
	g.statements(depth)
	if typ == 2 {
		g.expr(i32, depth)
	}
	g.close()
}

func (g *generator) statements(depth int) {
	for range g.pick(4) {
		if g.ops > 400 || depth <= 0 {
			return
		}
		g.statement(depth - 1)
	}
}

func (g *generator) statement(depth int) {
	switch g.pick(16) {
	case 0, 1:
		t := []byte{i32, i64}[g.pick(2)]
		g.expr(t, depth)
		g.ins(1, 0x21, g.local(t))
	case 2:
		g.address(depth)
		g.expr(i32, depth)
		g.ins(1, 0x36, 2, 0)
	case 3:
		g.block(0, depth)
	case 4, 5:
		g.loop(0, depth)
	case 6:
		g.ifElse(0, depth)
	case 7, 8:
		g.branchIf(0, depth)
	case 9:
		g.expr(i32, depth)
		g.ins(0, 0x1a)
	case 10:
		g.leave(depth)
	case 11:
		g.branchTable(depth)
	case 12:
		g.bulk(depth)
	case 13:
		g.expr(i32, depth)
		g.ins(1, 0x24, genState)
	case 14:
		g.ins(0, 0x01)
	case 15:
		g.selection(depth)
	}
}

// target picks an open block that takes a value of this type.
func (g *generator) target(result byte) (label byte, ok bool) {
	from := g.pick(len(g.labels))
	for i := range g.labels {
		n := (from + i) % len(g.labels)
		if g.labels[n].result == result {
			return byte(len(g.labels) - 1 - n), true
		}
	}
	return 0, false
}

func (g *generator) branchIf(result byte, depth int) {
	label, ok := g.target(result)
	if !ok {
		if result != 0 {
			g.constant(result, 1)
		}
		return
	}
	if result != 0 {
		g.expr(result, depth)
	}
	g.expr(i32, depth)
	g.ins(1, 0x0d, label)
}

// leave writes something that does not go on, inside a block that may be left
// out.
func (g *generator) leave(depth int) {
	g.expr(i32, depth)
	g.ins(1, 0x04, 0x40)
	g.labels = append(g.labels, genLabel{})
	switch g.pick(5) {
	case 0:
		g.expr(i32, depth)
		g.ins(1, 0x0f)
	case 1:
		g.ins(1, 0x00)
	case 2:
		g.expr(i32, depth)
		g.expr(i64, depth)
		g.ins(3, 0x12, byte(g.pick(genFuncs)))
	case 3:
		g.expr(i32, depth)
		g.expr(i64, depth)
		g.expr(i32, 0)
		g.ins(8, 0x13, 1, 0)
	default:
		g.jump(depth)
	}
	g.close()
}

func (g *generator) branchTable(depth int) {
	g.ins(0, 0x02, 0x40)
	g.labels = append(g.labels, genLabel{})
	var table []byte
	for range 1 + g.pick(4) {
		label, _ := g.target(0)
		table = append(table, label)
	}
	g.expr(i32, depth)
	g.ins(1, append([]byte{0x0e, byte(len(table) - 1)}, table...)...)
	g.close()
}

// selection writes a loop like those of Go's functions: a branch table by a local leads to the ends
// of blocks, and most of the code after them sets the local and branches to the head. The code
// after each end finally leaves the loop.
func (g *generator) selection(depth int) {
	index, blocks := g.local(i32), 1+g.pick(5)
	g.selections = append(g.selections, genSelection{index, blocks, len(g.labels)})
	g.ins(0, 0x03, 0x40)
	g.labels = append(g.labels, genLabel{loop: true})
	for range blocks {
		g.ins(0, 0x02, 0x40)
		g.labels = append(g.labels, genLabel{})
	}
	table := []byte{byte(blocks)}
	for range blocks + 1 {
		label := byte(g.pick(blocks))
		if out, _ := g.target(0); int(out) > blocks && g.pick(4) == 0 {
			label = out
		}
		table = append(table, label)
	}
	g.ins(1, 0x20, index)
	g.ins(1, append([]byte{0x0e}, table...)...)
	for range blocks {
		g.close()
		g.useGas()
		g.statements(depth)
		g.choose(depth)
	}
	g.close()
	g.selections = g.selections[:len(g.selections)-1]
}

// choose writes how code goes back to the head of a selection, if it does.
func (g *generator) choose(depth int) {
	to, maybe := g.selections[g.pick(len(g.selections))], g.pick(3)
	if maybe == 0 {
		return
	}
	if maybe == 1 {
		g.expr(i32, depth)
		g.ins(1, 0x04, 0x40)
		g.labels = append(g.labels, genLabel{})
	}
	g.constant(i32, int64(g.pick(to.blocks+3)-1))
	if g.pick(8) == 0 {
		g.ins(0, 0x01) // the rewriter does not see through this
	}
	if g.pick(4) == 0 {
		to.index = g.local(i32)
	}
	g.ins(1, 0x21, to.index)
	g.ins(1, 0x0c, byte(len(g.labels)-1-to.head))
	if maybe == 1 {
		g.close()
	}
}

// bulk writes a memory.fill or memory.copy of known or unknown length.
func (g *generator) bulk(depth int) {
	g.address(depth)
	fill := g.pick(2) == 0
	if fill {
		g.expr(i32, depth)
	} else {
		g.address(depth)
	}
	length := int64(g.byte())
	cost := 10 + length>>4
	g.constant(i32, length)
	if g.pick(2) == 0 { // the rewriter does not see through this
		g.ins(0, 0x01)
	}
	if fill {
		g.ins(cost, 0xfc, 0x0b, 0)
	} else {
		g.ins(cost, 0xfc, 0x0a, 0, 0)
	}
}
