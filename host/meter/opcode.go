// SPDX-License-Identifier: Apache-2.0

package meter

// imm is the format of an opcode's immediates.
type imm uint8

const (
	immUnknown  imm = iota // the opcode is refused
	immNone                // nothing
	immBlock               // block type
	immLabel               // label
	immLabels              // vector of labels and a label
	immFunc                // function index
	immIndirect            // type and table
	immLocal               // local index
	immGlobal              // global index
	immU32                 // an index that does not move
	immU32U32              // two of them
	immMem                 // alignment and offset
	immMemLane             // alignment, offset and lane
	immByte                // one byte: a lane, a reserved zero or a type
	immBytes16             // 16 bytes
	immI32                 // signed, up to 5 bytes
	immI64                 // signed, up to 10 bytes
	immF32                 // 4 bytes
	immF64                 // 8 bytes
	immTypes               // vector of types
	immPrefix              // the opcode's second part
)

// class is the class of charge of an instruction.
type class uint8

const (
	classFree class = iota // structure: it compiles to nothing or is charged elsewhere
	classPlain
	classDivide
	classCall
	classIndirect
	classGrow
	classBulk // the length is the last operand, in bytes
	classBulkTable
)

type opcode struct {
	imm   imm
	class class
}

// Opcodes that Rewrite checks or writes.
const (
	opUnreachable        = 0x00
	opBlock              = 0x02
	opLoop               = 0x03
	opIf                 = 0x04
	opElse               = 0x05
	opEnd                = 0x0b
	opBr                 = 0x0c
	opBrIf               = 0x0d
	opBrTable            = 0x0e
	opReturn             = 0x0f
	opCall               = 0x10
	opCallIndirect       = 0x11
	opReturnCall         = 0x12
	opReturnCallIndirect = 0x13
	opLocalGet           = 0x20
	opLocalSet           = 0x21
	opLocalTee           = 0x22
	opGlobalGet          = 0x23
	opGlobalSet          = 0x24
	opTableSet           = 0x26
	opI32Const           = 0x41
	opI64Const           = 0x42
	opI64LtS             = 0x53
	opI64GeS             = 0x59
	opI64Add             = 0x7c
	opI64Sub             = 0x7d
	opI64Or              = 0x84
	opI64ShrU            = 0x88
	opI64ExtendI32U      = 0xad
	opRefNull            = 0xd0
	opRefFunc            = 0xd2
	opMisc               = 0xfc
	opVector             = 0xfd
	opAtomic             = 0xfe
)

// Opcodes after opMisc.
const (
	miscMemoryInit = 0x08
	miscDataDrop   = 0x09
	miscTableInit  = 0x0c
	miscElemDrop   = 0x0d
	miscTableCopy  = 0x0e
	miscTableGrow  = 0x0f
	miscTableFill  = 0x11
)

const (
	typeI32    = 0x7f
	typeI64    = 0x7e
	typeF64    = 0x7c
	typeV128   = 0x7b
	blockEmpty = 0x40
	blockVoid  = -0x40 // the same as a number
)

// The instructions that Rewrite supports: WebAssembly 2.0, extended constant expressions, tail
// calls and threads, each opcode with its immediates. All others are refused.
var (
	opcodes       = baseOpcodes()
	miscOpcodes   = miscTable()
	vectorOpcodes = vectorTable()
	atomicOpcodes = atomicTable()
)

func set(t []opcode, from, to int, op opcode) {
	for i := from; i <= to; i++ {
		t[i] = op
	}
}

func baseOpcodes() *[256]opcode {
	var t [256]opcode
	plain := opcode{immNone, classPlain}
	set(t[:], opUnreachable, opUnreachable, plain)
	set(t[:], 0x01, 0x01, opcode{immNone, classFree}) // nop
	set(t[:], opBlock, opLoop, opcode{immBlock, classFree})
	set(t[:], opIf, opIf, opcode{immBlock, classPlain})
	set(t[:], opElse, opElse, opcode{immNone, classFree})
	set(t[:], opEnd, opEnd, opcode{immNone, classFree})
	set(t[:], opBr, opBrIf, opcode{immLabel, classPlain})
	set(t[:], opBrTable, opBrTable, opcode{immLabels, classPlain})
	set(t[:], opReturn, opReturn, plain)
	set(t[:], opCall, opCall, opcode{immFunc, classCall})
	set(t[:], opCallIndirect, opCallIndirect, opcode{immIndirect, classIndirect})
	set(t[:], opReturnCall, opReturnCall, opcode{immFunc, classCall})
	set(t[:], opReturnCallIndirect, opReturnCallIndirect, opcode{immIndirect, classIndirect})
	set(t[:], 0x1a, 0x1a, opcode{immNone, classFree}) // drop
	set(t[:], 0x1b, 0x1b, plain)                      // select
	set(t[:], 0x1c, 0x1c, opcode{immTypes, classPlain})
	set(t[:], opLocalGet, opLocalTee, opcode{immLocal, classPlain})
	set(t[:], opGlobalGet, opGlobalSet, opcode{immGlobal, classPlain})
	set(t[:], 0x25, 0x26, opcode{immU32, classPlain})  // table.get, table.set
	set(t[:], 0x28, 0x3e, opcode{immMem, classPlain})  // loads and stores
	set(t[:], 0x3f, 0x3f, opcode{immByte, classPlain}) // memory.size
	set(t[:], 0x40, 0x40, opcode{immByte, classGrow})
	set(t[:], opI32Const, opI32Const, opcode{immI32, classPlain})
	set(t[:], opI64Const, opI64Const, opcode{immI64, classPlain})
	set(t[:], 0x43, 0x43, opcode{immF32, classPlain})
	set(t[:], 0x44, 0x44, opcode{immF64, classPlain})
	set(t[:], 0x45, 0xc4, plain) // comparisons, arithmetic, conversions, sign extension
	for _, op := range []int{0x6d, 0x6e, 0x6f, 0x70, 0x7f, 0x80, 0x81, 0x82, 0x91, 0x95, 0x9f, 0xa3} {
		t[op].class = classDivide
	}
	set(t[:], opRefNull, opRefNull, opcode{immByte, classPlain})
	set(t[:], 0xd1, 0xd1, plain) // ref.is_null
	set(t[:], opRefFunc, opRefFunc, opcode{immFunc, classPlain})
	set(t[:], opMisc, opAtomic, opcode{immPrefix, classFree})
	return &t
}

func miscTable() []opcode {
	t := make([]opcode, 0x12)
	set(t, 0x00, 0x07, opcode{immNone, classPlain})       // saturating truncations
	set(t, 0x08, 0x08, opcode{immU32U32, classBulk})      // memory.init
	set(t, 0x09, 0x09, opcode{immU32, classPlain})        // data.drop
	set(t, 0x0a, 0x0a, opcode{immU32U32, classBulk})      // memory.copy
	set(t, 0x0b, 0x0b, opcode{immU32, classBulk})         // memory.fill
	set(t, 0x0c, 0x0c, opcode{immU32U32, classBulkTable}) // table.init
	set(t, 0x0d, 0x0d, opcode{immU32, classPlain})        // elem.drop
	set(t, 0x0e, 0x0e, opcode{immU32U32, classBulkTable}) // table.copy
	set(t, 0x0f, 0x0f, opcode{immU32, classGrow})         // table.grow
	set(t, 0x10, 0x10, opcode{immU32, classPlain})        // table.size
	set(t, 0x11, 0x11, opcode{immU32, classBulkTable})    // table.fill
	return t
}

func vectorTable() []opcode {
	t := make([]opcode, 0x100)
	set(t, 0x00, 0xff, opcode{immNone, classPlain})
	set(t, 0x00, 0x0b, opcode{immMem, classPlain})
	set(t, 0x0c, 0x0d, opcode{immBytes16, classPlain})
	set(t, 0x15, 0x22, opcode{immByte, classPlain})
	set(t, 0x54, 0x5b, opcode{immMemLane, classPlain})
	set(t, 0x5c, 0x5d, opcode{immMem, classPlain})
	for _, op := range []int{0xe3, 0xe7, 0xef, 0xf3} { // square roots and divisions
		t[op].class = classDivide
	}
	for _, op := range []int{ // not assigned
		0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb,
		0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee,
	} {
		t[op] = opcode{}
	}
	return t
}

func atomicTable() []opcode {
	t := make([]opcode, 0x4f)
	set(t, 0x00, 0x02, opcode{immMem, classPlain})
	set(t, 0x03, 0x03, opcode{immByte, classPlain}) // fence
	set(t, 0x10, 0x4e, opcode{immMem, classPlain})
	return t
}
