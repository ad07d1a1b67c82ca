package host

import (
	"encoding/binary"
	"fmt"
)

// maxLocals bounds the locals of one function, as web browsers do.
const maxLocals = 50_000

// wazero allocates by the counts in these parts of a module before it reads
// what they count. A module of a hundred bytes could make it ask for a hundred
// gigabytes, which ends the process, so the counts are checked here.

// maxCounts bound the entries of the sections, below what web browsers take; the
// largest Go programs have 10,000 functions, and 100,000 data segments, which is
// where their linker stops. Millions of entries of two bytes each are
// gigabytes once they are read.
var maxCounts = map[byte]int{
	sectionType: 100_000, sectionImport: 10_000, sectionFunction: 300_000, sectionGlobal: 100_000,
	sectionExport: 100_000, sectionElement: 100_000, sectionCode: 300_000, sectionData: 100_000, sectionTag: 1_000,
}

const (
	maxSections = 1_000
	// maxParams bounds the parameters, and the results, of one type.
	maxParams = 1_000
)

// checkCount checks how many entries a section says that it has.
func checkCount(id byte, payload []byte) error {
	limit, ok := maxCounts[id]
	if !ok {
		return nil
	}
	n, err := (&wasmReader{b: payload}).count()
	if err == nil && n > limit {
		err = fmt.Errorf("has %d entries, the limit is %d", n, limit)
	}
	return err
}

// checkBody checks one function of the code section.
func checkBody(r *wasmReader) error {
	body, err := r.block()
	if err != nil {
		return err
	}
	var locals uint64
	return (&wasmReader{b: body}).each(func(r *wasmReader) error {
		n, err := r.u32()
		if err != nil {
			return err
		}
		if locals += uint64(n); locals > maxLocals {
			return fmt.Errorf("function has more than %d locals", maxLocals)
		}
		_, err = r.byte()
		return err
	})
}

// checkData checks one segment of the data section.
func checkData(r *wasmReader) error {
	flags, err := r.u32()
	if err != nil {
		return err
	}
	if flags == 2 { // a memory index
		if _, err := r.u32(); err != nil {
			return err
		}
	}
	if flags != 1 { // active: an offset
		if err := r.constExpr(); err != nil {
			return err
		}
	}
	_, err = r.block()
	return err
}

// checkElement checks one segment of the element section. Of its flags, the
// lowest says that it is not active, the next that it has a table index or is
// declared only, the third that it holds expressions and not functions.
func checkElement(r *wasmReader) error {
	flags, err := r.u32()
	if err != nil {
		return err
	}
	if flags > 7 {
		return fmt.Errorf("element flags %d are unknown", flags)
	}
	if flags&3 == 2 {
		if _, err := r.u32(); err != nil {
			return err
		}
	}
	if flags&1 == 0 {
		if err := r.constExpr(); err != nil {
			return err
		}
	}
	if flags&3 != 0 { // a kind or type
		if _, err := r.byte(); err != nil {
			return err
		}
	}
	return r.each(func(r *wasmReader) error {
		if flags&4 != 0 {
			return r.constExpr()
		}
		_, err := r.u32()
		return err
	})
}

// constExpr reads over a constant expression.
func (r *wasmReader) constExpr() error {
	for {
		op, err := r.byte()
		if err != nil {
			return err
		}
		switch op {
		case 0x0b: // end
			return nil
		case 0x41, 0x42, 0x23, 0xd0, 0xd2: // i32.const, i64.const, global.get, ref.null, ref.func
			_, n := binary.Uvarint(r.b[r.pos:])
			if n <= 0 {
				return errTruncated
			}
			r.pos += n
		case 0x43: // f32.const
			err = r.skip(4)
		case 0x44: // f64.const
			err = r.skip(8)
		case 0xfd: // v128.const
			err = r.skip(17)
		default:
			return fmt.Errorf("opcode %#x is not allowed in a constant expression", op)
		}
		if err != nil {
			return err
		}
	}
}

func (r *wasmReader) skip(n int) error {
	if r.left() < n {
		return errTruncated
	}
	r.pos += n
	return nil
}

// Parts of the name section that wazero reads.
const (
	namesOfFunctions = 1
	namesOfLocals    = 2
)

// checkNames checks the name section.
func checkNames(r *wasmReader) error {
	for r.left() > 0 {
		id, err := r.byte()
		if err != nil {
			return err
		}
		part, err := r.block()
		if err != nil {
			return err
		}
		pr := &wasmReader{b: part}
		switch id {
		case namesOfFunctions:
			err = pr.each(checkName)
		case namesOfLocals:
			err = pr.each(func(r *wasmReader) error {
				if _, err := r.u32(); err != nil {
					return err
				}
				return r.each(checkName)
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkName(r *wasmReader) error {
	if _, err := r.u32(); err != nil {
		return err
	}
	_, err := r.block()
	return err
}
