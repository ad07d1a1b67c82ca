// SPDX-License-Identifier: Apache-2.0

package meter

import "github.com/wasmctl/wasmctl/host/internal/binary"

// instr is one instruction, decoded as far as metering needs it.
type instr struct {
	op     byte
	prefix bool   // op is a prefix and sub the opcode
	sub    uint32 // second part of the opcode
	imm    imm
	class  class
	at     int    // offset of the opcode in the reader
	a      uint32 // first immediate: an index, a label, the first of a vector's count
	value  int64  // of i32.const, and the block type
}

// decode reads one instruction. It leaves the labels of br_table to the caller: a is their number
// without the last one.
func decode(r *binary.Reader, in *instr, fn int) {
	in.at, in.prefix = r.Pos(), false
	in.op = r.Byte()
	o := opcodes[in.op]
	if o.imm == immPrefix {
		in.prefix = true
		in.sub = r.U32()
		o = second(in.op, in.sub)
	}
	in.imm, in.class = o.imm, o.class
	if o.imm == immUnknown && r.OK() {
		r.Fail(unknown(*r, in, fn))
		return
	}
	in.immediates(r)
}

func second(prefix byte, sub uint32) opcode {
	t := miscOpcodes
	switch prefix {
	case opVector:
		t = vectorOpcodes
	case opAtomic:
		t = atomicOpcodes
	}
	if int64(sub) >= int64(len(t)) {
		return opcode{}
	}
	return t[sub]
}

func unknown(r binary.Reader, in *instr, fn int) error {
	e := &UnknownOpcodeError{Opcode: uint32(in.op), Func: fn, Offset: r.At() - r.Pos() + in.at}
	if in.prefix {
		e.Prefix, e.Opcode = in.op, in.sub
	} else if in.op == gcPrefix {
		e.Prefix, e.Opcode = in.op, r.U32()
	}
	e.Name = refusedName(e.Prefix, e.Opcode)
	return e
}

func (in *instr) immediates(r *binary.Reader) {
	switch in.imm {
	case immBlock:
		in.value = r.LEB(5)
	case immLabel, immLabels, immFunc, immLocal, immGlobal, immU32:
		in.a = r.U32()
	case immIndirect, immU32U32:
		in.a = r.U32()
		r.U32()
	case immMem, immMemLane:
		// Bit 6 of the alignment means that a memory index follows.
		if align := r.U32(); align >= 64 {
			r.Failf("more than one memory is not supported")
		}
		r.U32()
		if in.imm == immMemLane {
			r.Byte()
		}
	case immByte:
		r.Byte()
	case immBytes16:
		r.Skip(16)
	case immI32:
		in.value = r.LEB(5)
	case immI64:
		r.LEB(10)
	case immF32:
		r.Skip(4)
	case immF64:
		r.Skip(8)
	case immTypes:
		r.Skip(r.Count())
	case immNone, immPrefix, immUnknown:
	}
}

// cost returns the charge of an instruction, which must not be a call: its cost depends on the
// callee.
func (c class) cost() int64 {
	switch c {
	case classPlain:
		return costPlain
	case classDivide:
		return costDivide
	case classIndirect:
		return costIndirect
	case classGrow:
		return costGrow
	case classBulk, classBulkTable:
		return costBulk
	case classFree, classCall:
	}
	return 0
}
