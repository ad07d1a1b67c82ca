// SPDX-License-Identifier: Apache-2.0

package load

import "github.com/wasmctl/wasmctl/host/internal/binary"

// maxLocals bounds the locals of one function, as web browsers do, and maxAllLocals those of
// all functions. A group of locals takes a few bytes, whatever its number, but the compiler
// allocates memory for each local. A Go program of 11 MB has 100,000.
const (
	maxLocals    = 50_000
	maxAllLocals = 4_000_000
)

// wazero allocates by the counts in these parts of a module before it reads
// what they count. A module of a hundred bytes could make it ask for a hundred
// gigabytes, which ends the process, so the counts are checked here.

// maxCounts bound the entries of the sections, below what web browsers take; the
// largest Go programs have 10,000 functions, and 100,000 data segments, which is
// where their linker stops. Millions of entries of two bytes each are
// gigabytes once they are read.
var maxCounts = map[byte]int{
	binary.SectionType: 100_000, binary.SectionImport: 10_000, binary.SectionFunction: 300_000, binary.SectionGlobal: 100_000,
	binary.SectionExport: 100_000, binary.SectionElement: 100_000, binary.SectionCode: 300_000, binary.SectionData: 100_000, binary.SectionTag: 1_000,
}

// maxParams bounds the parameters, and the results, of one type.
const maxParams = 1_000

// checkCount checks how many entries a section says that it has.
func checkCount(id byte, r binary.Reader) error {
	limit, ok := maxCounts[id]
	if !ok {
		return nil
	}
	if n := r.Count(); n > limit {
		r.Failf("has %d entries, the limit is %d", n, limit)
	}
	return r.Err()
}

// checkBody checks one function of the code section.
func (m *Module) checkBody(r *binary.Reader) {
	body := r.Block()
	var locals uint64
	body.Each(func(r *binary.Reader) {
		if locals += uint64(r.U32()); locals > maxLocals {
			r.Failf("function has more than %d locals", maxLocals)
		}
		r.Byte()
	})
	r.Fail(body.Err())
	if m.locals += locals; m.locals > maxAllLocals {
		r.Failf("functions have more than %d locals together", maxAllLocals)
	}
}

// checkData checks one segment of the data section.
func (m *Module) checkData(r *binary.Reader) {
	flags := r.U32()
	if flags == 1 {
		m.segments++
	}
	if flags == 2 { // a memory index
		r.U32()
	}
	if flags != 1 { // active: an offset
		checkConst(r)
	}
	r.Block()
}

// maxElements bounds the entries of all element segments, which an instance has in memory
// with 8 bytes each.
const maxElements = 2 * maxTableEntries

// checkElement checks one segment of the element section. Bit 0 of its flags means that it
// is not active, bit 1 that it has a table index or is only declared, and bit 2 that it has
// expressions instead of functions.
func (m *Module) checkElement(r *binary.Reader) {
	m.segments++
	flags := r.U32()
	if flags > 7 {
		r.Failf("element flags %d are unknown", flags)
	}
	if flags&3 == 2 {
		r.U32()
	}
	if flags&1 == 0 {
		checkConst(r)
	}
	if flags&3 != 0 { // a kind or type
		r.Byte()
	}
	r.Each(func(r *binary.Reader) {
		if m.elements++; m.elements > maxElements {
			r.Failf("segments have more than %d entries together", maxElements)
		}
		if flags&4 != 0 {
			checkConst(r)
		} else {
			r.U32()
		}
	})
}

// checkConst reads over a constant expression.
func checkConst(r *binary.Reader) {
	for r.OK() {
		switch op := r.Byte(); op {
		case 0x0b: // end
			return
		case 0x41, 0x42, 0x23, 0xd0, 0xd2: // i32.const, i64.const, global.get, ref.null, ref.func
			r.LEB(10)
		case 0x43: // f32.const
			r.Skip(4)
		case 0x44: // f64.const
			r.Skip(8)
		case 0xfd: // v128.const
			r.Skip(17)
		default:
			r.Failf("opcode %#x is not allowed in a constant expression", op)
		}
	}
}

// checkNames checks the name section.
func checkNames(r *binary.Reader) {
	for r.Left() > 0 {
		id, part := r.Byte(), r.Block()
		switch id {
		case binary.NamesOfFunctions:
			part.Each(checkName)
		case binary.NamesOfLocals:
			part.Each(func(r *binary.Reader) {
				r.U32()
				r.Each(checkName)
			})
		}
		r.Fail(part.Err())
	}
}

func checkName(r *binary.Reader) {
	r.U32()
	r.Block()
}
