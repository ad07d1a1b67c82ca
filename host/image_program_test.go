// SPDX-License-Identifier: Apache-2.0

package host

import (
	"math/rand/v2"

	"github.com/wasmctl/wasmctl/host/internal/binary"
)

// programmer makes random modules. Their functions have three locals of i32.
type programmer struct {
	r    *rand.Rand
	code []byte
}

// Functions and globals of such a module. Globals 0 to 2 are i32, 3 i64, 4 f64.
const (
	programPages   = 2
	programGlobals = 5
)

func section(out []byte, id byte, entries ...[]byte) []byte {
	payload := binary.AppendU32(nil, uint32(len(entries))) //nolint:gosec // few
	for _, e := range entries {
		payload = append(payload, e...)
	}
	return binary.AppendSection(out, id, payload)
}

func export(name string, kind, idx byte) []byte {
	return append(binary.AppendName(nil, name), kind, idx)
}

func (p *programmer) module() []byte {
	out := []byte(binary.Header)
	out = section(out, binary.SectionType, []byte{0x60, 0, 0}, []byte{0x60, 1, 0x7f, 1, 0x7f}, []byte{0x60, 2, 0x7f, 0x7f, 1, 0x7e})
	out = section(out, binary.SectionFunction, []byte{0}, []byte{1}, []byte{0}, []byte{2})
	out = section(out, binary.SectionMemory, []byte{0, programPages})
	i32 := []byte{0x7f, 1, 0x41, 7, 0x0b}
	out = section(out, binary.SectionGlobal, i32, i32, i32, []byte{0x7e, 1, 0x42, 9, 0x0b}, []byte{0x7c, 1, 0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x0b})
	out = section(out, binary.SectionExport, export("memory", binary.KindMemory, 0), export("reconciler_abi_1", binary.KindFunc, 0),
		export("buffer", binary.KindFunc, 1), export("_initialize", binary.KindFunc, 2), export("reconcile", binary.KindFunc, 3))
	out = section(out, binary.SectionCode, body(nil), body([]byte{0x41, 0x80, 0x08}), body(p.changes(1+p.r.IntN(12))), body(p.reconcile()))
	var data [][]byte
	for range p.r.IntN(6) {
		seg := append(binary.AppendS64([]byte{0, 0x41}, int64(2048+p.r.IntN(100_000))), 0x0b)
		text := make([]byte, p.r.IntN(300))
		for i := range text {
			text[i] = byte(p.r.Uint32())
		}
		data = append(data, binary.AppendName(seg, text))
	}
	if p.r.IntN(4) == 0 { // one that is passive: wazero keeps the data, and copies it into each instance
		data = append(data, []byte{1, 0})
	}
	answer := "\x82\xa6action\xa7requeue\xa8after_ms\xce\x00\x00\x00\x00"
	return section(out, binary.SectionData, append(data, binary.AppendName([]byte{0, 0x41, 16, 0x0b}, answer))...)
}

func body(code []byte) []byte {
	return binary.AppendName(nil, append(append([]byte{1, 3, 0x7f}, code...), 0x0b))
}

func (p *programmer) add(b ...byte) { p.code = append(p.code, b...) }
func (p *programmer) constant(v int64) {
	p.code = binary.AppendS64(append(p.code, 0x41), int64(int32(v)))
}                                        //nolint:gosec // the bits of an i32
func (p *programmer) store(align byte)   { p.add(0x36, align, 0) }
func (p *programmer) global(get, i byte) { p.add(get, i) }

// changes are random changes of memory and globals.
func (p *programmer) changes(n int) []byte {
	p.code = nil
	for range n {
		switch p.r.IntN(6) {
		case 0: // some of the last page, wherever that is
			p.constant(int64(2048 + p.r.IntN(programPages<<16-4096)))
			p.constant(int64(p.r.Uint32()))
			p.store(0)
		case 1:
			p.global(0x23, 0)
			p.constant(int64(p.r.Uint32()))
			p.add(0x73) // xor
			p.global(0x24, byte(p.r.IntN(3)))
		case 2: // global 3 = 3 * global 3 + 1
			p.add(0x23, 3, 0x42, 3, 0x7e, 0x42, 1, 0x7c, 0x24, 3)
		case 3: // global 4 = global 4 + global 4
			p.add(0x23, 4, 0x23, 4, 0xa0, 0x24, 4)
		case 4: // grow, and write to what is new
			p.constant(int64(p.r.IntN(2)))
			p.add(0x40, 0, 0x1a)
			p.add(0x3f, 0, 0x41, 16, 0x74) // bytes
			p.constant(8 + int64(p.r.IntN(60_000)))
			p.add(0x6b)
			p.constant(int64(p.r.Uint32()))
			p.store(0)
		default: // memory.fill
			p.constant(int64(2048 + p.r.IntN(10_000)))
			p.constant(int64(p.r.IntN(256)))
			p.constant(int64(p.r.IntN(9000)))
			p.add(0xfc, 0x0b, 0)
		}
	}
	return p.code
}

// reconcile changes some, and returns a hash of memory, its size and the globals. One
// in some programs traps in its second call.
func (p *programmer) reconcile() []byte {
	p.changes(p.r.IntN(5))
	if p.r.IntN(4) == 0 { // trap if global 1 is even
		p.add(0x23, 1, 0x41, 1, 0x71, 0x45, 0x04, 0x40, 0x00, 0x0b)
	}
	// local 2 = hash of globals; local 3 = address
	p.add(0x23, 0, 0x23, 1, 0x73, 0x23, 2, 0x6a, 0x23, 3, 0xa7, 0x6a, 0x23, 4, 0xbd, 0x42, 32, 0x88, 0xa7, 0x6a, 0x3f, 0, 0x6a, 0x21, 2)
	p.constant(2048)
	p.add(0x21, 3, 0x03, 0x40) // loop
	p.add(0x20, 2, 0x41, 31, 0x6c, 0x20, 3, 0x28, 0, 0, 0x6a, 0x21, 2)
	p.add(0x20, 3, 0x41, 4, 0x6a, 0x22, 3, 0x3f, 0, 0x41, 16, 0x74, 0x49, 0x0d, 0, 0x0b)
	// the lower 24 bits into the answer, whose number begins at 16 + 26
	for i, shift := range []int64{16, 8, 0} {
		p.constant(int64(16 + 27 + i))
		p.add(0x20, 2)
		p.constant(shift)
		p.add(0x76, 0x3a, 0, 0)
	}
	p.add(0x42, 16, 0x42, 32, 0x86, 0x42, 30, 0x84)
	return p.code
}
