package meter

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

// decode reads one instruction. The labels of br_table are left to be read: a
// is their count without the last one.
func decode(r *reader, in *instr, fn int) {
	in.at, in.prefix = r.pos, false
	in.op = r.byte()
	o := opcodes[in.op]
	if o.imm == immPrefix {
		in.prefix = true
		in.sub = r.u32()
		o = second(in.op, in.sub)
	}
	in.imm, in.class = o.imm, o.class
	if o.imm == immUnknown && r.err == nil {
		r.err = unknown(r, in, fn)
		r.pos = len(r.b)
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

func unknown(r *reader, in *instr, fn int) error {
	e := &UnknownOpcodeError{Opcode: uint32(in.op), Func: fn, Offset: r.base + in.at}
	if in.prefix {
		e.Prefix, e.Opcode = in.op, in.sub
	} else if in.op == gcPrefix {
		e.Prefix, e.Opcode = in.op, r.u32()
	}
	e.Name = refusedName(e.Prefix, e.Opcode)
	return e
}

func (in *instr) immediates(r *reader) {
	switch in.imm {
	case immBlock:
		in.value = r.leb(5)
	case immLabel, immLabels, immFunc, immLocal, immGlobal, immU32:
		in.a = r.u32()
	case immIndirect, immU32U32:
		in.a = r.u32()
		r.u32()
	case immMem, immMemLane:
		// Bit 6 of the alignment says that a memory index follows.
		if align := r.u32(); align >= 64 {
			r.failf("more than one memory is not supported")
		}
		r.u32()
		if in.imm == immMemLane {
			r.byte()
		}
	case immByte:
		r.byte()
	case immBytes16:
		r.skip(16)
	case immI32:
		in.value = r.leb(5)
	case immI64:
		r.leb(10)
	case immF32:
		r.skip(4)
	case immF64:
		r.skip(8)
	case immTypes:
		r.skip(r.count())
	case immNone, immPrefix, immUnknown:
	}
}

// cost is what an instruction is charged where it stands. in must not be a
// call, whose cost depends on the callee.
func (k *Costs) cost(c class) uint32 {
	switch c {
	case classPlain:
		return k.Instruction
	case classDivide:
		return k.Divide
	case classIndirect:
		return k.CallIndirect
	case classGrow:
		return k.Grow
	case classBulk, classBulkTable:
		return k.Bulk
	case classFree, classCall:
	}
	return 0
}
