// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// binaryAttacks are modules that no tool would write.
func binaryAttacks() []attack {
	return slices.Concat(headerAttacks(), countAttacks(), sizeAttacks(), structureAttacks(), nameAttacks(), manifestAttacks())
}

// refused makes attacks that Load must refuse.
func refused(list []attack) []attack {
	for i := range list {
		list[i].on = onLoad
	}
	return list
}

func headerAttacks() []attack {
	whole := plain().bytes()
	return refused([]attack{
		{guest: "empty", bytes: func() []byte { return nil }, message: "is empty"},
		{guest: "text", bytes: func() []byte { return []byte("(module)") }, message: "is not WebAssembly"},
		{guest: "header only", bytes: only(), message: "missing: not a reconciler module"},
		{guest: "half a header", bytes: func() []byte { return header()[:6] }, message: "ends too early"},
		{guest: "version 2", bytes: func() []byte { return []byte("\x00asm\x02\x00\x00\x00") }, message: "version 2"},
		{guest: "component", bytes: func() []byte { return []byte("\x00asm\x0d\x00\x01\x00") }, message: "is a component"},
		{guest: "cut off", bytes: func() []byte { return whole[:len(whole)-1] }, message: "ends too early"},
		{guest: "section 99", bytes: ending(99, 0), message: "section id 99"},
		{guest: "number too long", bytes: only(1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01), message: "longer than 32 bits"},
	})
}

// countAttacks claim more elements than there are. A host that allocates by a count would crash.
func countAttacks() []attack {
	const most = 1<<32 - 1
	var out []attack
	for id, name := range sectionNames {
		out = append(out, attack{guest: "claims entries: " + name, bytes: only(section(id, claims(most, nil))...), message: "section " + name + ": ends too early"})
	}
	tooMany := func(n uint32) func() []byte {
		return with(func(m *binaryModule) { m.bodies[2] = bodyOf(n, 0x42, 0) })
	}
	brTable := append([]byte{0x41, 0, 0x0e}, binary.AppendUvarint(nil, most)...)
	return refused(append(out, []attack{
		{guest: "claims sections", bytes: only(customSection, 0xff, 0xff, 0xff, 0xff, 0x0f), message: "ends too early"},
		{guest: "claims parameters", bytes: only(section(typeSection, append([]byte{1, 0x60}, binary.AppendUvarint(nil, most)...))...), message: "ends too early"},
		{guest: "claims locals", bytes: tooMany(most), message: "more than 50000 locals"},
		{guest: "claims branches", bytes: with(func(m *binaryModule) { m.bodies[2] = body(append(brTable, 0x42, 0)...) }), message: "invalid function"},
		{guest: "claims names", bytes: with(func(m *binaryModule) { m.behind = names([]byte{1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f}) }), message: "section custom name"},
		{guest: "claims bodies it has not", bytes: with(func(m *binaryModule) { m.funcs = append(m.funcs, []byte{0}) }), message: "function and code section have inconsistent lengths"},
		{guest: "table of 4 billion", bytes: with(func(m *binaryModule) {
			m.tables = [][]byte{append([]byte{0x70, 0}, binary.AppendUvarint(nil, most)...)}
		}), message: "the limit is 131072"},
	}...))
}

// sizeAttacks are large.
func sizeAttacks() []attack {
	// 1 GiB, most of it never touched.
	gigabyte := func() []byte {
		b := make([]byte, 1<<30)
		copy(b, header())
		b[8] = customSection
		binary.PutUvarint(b[9:], 1<<30-14)
		return b
	}
	return []attack{
		{guest: "1 GiB of custom sections", on: onLoad, bytes: gigabyte, message: "is 1073741824 bytes long, the limit is 134217728"},
		{guest: "40 MiB of one custom section", bytes: with(func(m *binaryModule) { m.behind = section(customSection, append(text("x"), make([]byte, 40<<20)...)) })},
		{guest: "2 million custom sections", on: onLoad, bytes: with(func(m *binaryModule) { m.behind = bytes.Repeat([]byte{0, 1, 0}, 2_000_000) }), message: "has more than 1000 sections"},
		{guest: "2 million types", on: onLoad, bytes: with(func(m *binaryModule) { m.types = append(m.types, repeat(2_000_000, []byte{0x60, 0, 0})...) }), message: "section type: has 2000003 entries, the limit is 100000"},
		{guest: "100,000 functions", bytes: with(func(m *binaryModule) {
			m.funcs = append(m.funcs, repeat(100_000, []byte{0})...)
			m.bodies = append(m.bodies, repeat(100_000, body())...)
		})},
		{guest: "2 million functions", on: onLoad, bytes: with(func(m *binaryModule) {
			m.funcs = append(m.funcs, repeat(2_000_000, []byte{0})...)
			m.bodies = append(m.bodies, repeat(2_000_000, body())...)
		}), message: "section function: has 2000003 entries, the limit is 300000"},
		{guest: "500,000 imports", on: onLoad, bytes: with(func(m *binaryModule) {
			m.imports = repeat(500_000, append(append(text("env"), text("nothing")...), 0, 0))
		}), message: "section import: has 500000 entries, the limit is 10000"},
		{guest: "10,000 imports", on: onLoad, bytes: with(func(m *binaryModule) {
			m.imports = repeat(10_000, append(append(text("env"), text("nothing")...), 0, 0))
		}), message: "and 9902 more"},
		{guest: "a long import", on: onLoad, bytes: with(func(m *binaryModule) {
			m.imports = [][]byte{append(append(text("env"), text(strings.Repeat("x", 8<<20))...), 0, 0)}
		}), message: "bytes left out"},
		{guest: "500,000 exports", on: onLoad, bytes: with(func(m *binaryModule) {
			for i := range 500_000 {
				m.exports = append(m.exports, export(string(binary.LittleEndian.AppendUint32([]byte("x"), uint32(i)|0x40404040&0x7f7f7f7f)), 0, 0))
			}
		}), message: "section export: has 500004 entries, the limit is 100000"},
		{guest: "50,000 nested blocks", on: onLoad, bytes: with(func(m *binaryModule) {
			m.bodies[2] = body(append(append(bytes.Repeat([]byte{0x02, 0x40}, 50_000), bytes.Repeat([]byte{0x0b}, 50_000)...), 0x42, 0)...)
		}), message: "has 50000 blocks and branches that follow each other"},
		{guest: "a million branches of one block", on: onLoad, bytes: with(func(m *binaryModule) {
			deep := bytes.Repeat([]byte{0x02, 0x40, 0x0b}, 5_000)
			table := append([]byte{0x02, 0x40, 0x41, 0, 0x0e}, binary.AppendUvarint(nil, 1_000_000)...)
			m.bodies[2] = body(slices.Concat(deep, table, make([]byte, 1_000_001), []byte{0x0b, 0x42, 0})...)
		}), message: "that follow each other"},
		{guest: "250,000 blocks", on: onLoad, bytes: with(func(m *binaryModule) {
			m.bodies[2] = body(append(append([]byte{0x42, 0, 0x0f}, bytes.Repeat([]byte{0x02, 0x40, 0x0b}, 250_000)...), 0x42, 0)...)
		}), message: "has 250000 blocks and branches, the limit is 200000"},
		{guest: "blocks that carry locals", on: onLoad, bytes: with(func(m *binaryModule) {
			m.bodies[2] = bodyOf(39_998, append(append([]byte{0x42, 0, 0x0f}, bytes.Repeat([]byte{0x02, 0x40, 0x0b}, 30_000)...), 0x42, 0)...)
		}), message: "30000 blocks and branches and 40000 locals"},
		{guest: "5,000 nested blocks", on: onLoad, bytes: with(func(m *binaryModule) {
			m.bodies[2] = body(append(append(bytes.Repeat([]byte{0x02, 0x40}, 5_000), bytes.Repeat([]byte{0x0b}, 5_000)...), 0x42, 0)...)
		})},
		{guest: "40,000 locals", bytes: with(func(m *binaryModule) { m.bodies[2] = bodyOf(40_000, 0x42, 0) })},
		{guest: "2,000 parameters", on: onLoad, bytes: with(func(m *binaryModule) {
			m.types = append(m.types, append(append([]byte{0x60}, sized(bytes.Repeat([]byte{0x7f}, 2_000))...), 0))
			m.funcs, m.bodies = append(m.funcs, []byte{3}), append(m.bodies, body())
		}), message: "has 2000 parameters"},
	}
}

func structureAttacks() []attack {
	return refused([]attack{
		{guest: "no such type", bytes: with(func(m *binaryModule) { m.funcs[2] = []byte{9} }), message: "type 9 does not exist"},
		{guest: "no such function", bytes: with(func(m *binaryModule) { m.exports[3] = export("reconcile", 0, 77) }), message: "function 77 does not exist"},
		{guest: "no such memory", bytes: with(func(m *binaryModule) { m.exports[0] = export("memory", 2, 5) }), message: "memory"},
		{guest: "no such start", bytes: func() []byte {
			m := plain()
			at := slices.Index(m.bytes(), codeSection) // the first byte 10 begins the code section
			b := m.bytes()
			return slices.Concat(b[:at], section(startSection, []byte{50}), b[at:])
		}, message: "start"},
		{guest: "two memories", bytes: with(func(m *binaryModule) { m.memories = append(m.memories, []byte{0, 1}) }), message: "memory: found 2"},
		{guest: "no memory", bytes: with(func(m *binaryModule) { m.memories, m.exports = nil, m.exports[1:] }), message: "export[memory]: missing"},
		{guest: "memory of 64 bits", bytes: with(func(m *binaryModule) { m.memories[0] = []byte{4, 1} }), message: "64-bit"},
		{guest: "shared memory", bytes: with(func(m *binaryModule) { m.memories[0] = []byte{3, 1, 2} }), message: "shared memory"},
		{guest: "memory of minus pages", bytes: with(func(m *binaryModule) { m.memories[0] = []byte{1, 2, 1} }), message: "min 2 pages (128 Ki) > max 1 pages"},
		{guest: "two exports of a name", bytes: with(func(m *binaryModule) { m.exports = append(m.exports, export("reconcile", 0, 0)) }), message: "duplicates"},
		{guest: "two sections of a kind", bytes: ending(section(typeSection, []byte{0})...), message: "section"},
		{guest: "name is not UTF-8", bytes: with(func(m *binaryModule) { m.exports = append(m.exports, export("\xff\xfe", 0, 0)) }), message: "is not UTF-8"},
		{guest: "atomic instruction", bytes: with(func(m *binaryModule) { m.bodies[2] = body(0xfe, 0x10, 2, 0) }), message: "i32.atomic.load invalid"},
		{guest: "unknown opcode", bytes: with(func(m *binaryModule) { m.bodies[2] = body(0xff) }), message: "0xff"},
		{guest: "wrong types inside", bytes: with(func(m *binaryModule) { m.bodies[2] = body(0x41, 0) }), message: "invalid function"},
		{guest: "stack underflow", bytes: with(func(m *binaryModule) { m.bodies[2] = body(0x7c) }), message: "invalid function"},
		{guest: "body does not end", bytes: with(func(m *binaryModule) { m.bodies[2] = sized([]byte{0, 0x42, 0}) }), message: "end"},
		{guest: "data that is no constant", bytes: with(func(m *binaryModule) { m.data = [][]byte{{0, 0x10, 0, 0x0b, 0}} }), message: "not allowed in a constant expression"},
		{guest: "the host's own globals", bytes: with(func(m *binaryModule) {
			m.globals = [][]byte{{0x7e, 1, 0x42, 0, 0x0b}}
			m.exports = append(m.exports, export("wasmctl_fuel", 3, 0))
		}), message: "reserved name"},
		{guest: "the host's own functions", bytes: with(func(m *binaryModule) {
			m.imports = [][]byte{append(append(text("wasmctl_meter"), text("refill")...), 0, 0)}
		}), message: "this host has no module"},
	})
}

// nameAttacks have a name section that lies. Names are shown in stacks of traps.
func nameAttacks() []attack {
	trap := func(parts ...[]byte) func() []byte {
		return with(func(m *binaryModule) { m.bodies[2], m.behind = body(0x00), names(parts...) })
	}
	part := func(id byte, entries ...[]byte) []byte { return section(id, vector(entries)) }
	named := func(index uint64, name string) []byte { return append(binary.AppendUvarint(nil, index), text(name)...) }
	return []attack{
		{guest: "names of functions that are not there", bytes: trap(part(1, named(1<<32-1, "ghost"), named(5, "other"))), kind: abi.FailureTrap, message: "unreachable"},
		{guest: "names out of order", bytes: trap(part(1, named(2, "b"), named(2, "c"), named(0, "a"))), kind: abi.FailureTrap, message: "unreachable"},
		{guest: "name of 1 MiB", bytes: trap(part(1, named(2, strings.Repeat("x", 1<<20)))), kind: abi.FailureTrap, message: "unreachable"},
		{guest: "name of control characters", bytes: trap(part(1, named(2, "\x1b[2J\n\tat main.go:1\x00"))), kind: abi.FailureTrap, message: "unreachable"},
		{guest: "name that is not UTF-8", on: onLoad, bytes: trap(part(1, named(2, "\xff\xfe"))), message: "UTF-8"},
		{guest: "names of names", bytes: trap(part(9, named(1, "x")), []byte{200, 1, 0}), kind: abi.FailureTrap, message: "unreachable"},
		{guest: "two name sections", on: onLoad, bytes: with(func(m *binaryModule) {
			m.bodies[2] = body(0x00)
			m.behind = append(names(part(1, named(2, "one"))), names(part(1, named(2, "two")))...)
		}), message: "redundant custom section name"},
	}
}

// manifestAttacks ask for more than anybody gives, or cannot be read.
func manifestAttacks() []attack {
	limits := "\x81\xa6limits\x83\xa6memory\xcf\x7f\xff\xff\xff\xff\xff\xff\xff\xa7timeout\xcf\x7f\xff\xff\xff\xff\xff\xff\xff\xa5stack\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"
	grows := with(func(m *binaryModule) {
		m.bodies[2] = body(0x03, 0x40, 0x41, 1, 0x40, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, 0x00) // until it is refused, then traps
		m.behind = manifest(limits)
	})
	return append(
		refused([]attack{
			{guest: "manifest is no msgpack", bytes: ending(manifest("\xc1")...), message: "section[reconciler.manifest]"},
			{guest: "manifest is empty", bytes: ending(manifest("")...), message: "section[reconciler.manifest]"},
			{guest: "manifest nests", bytes: ending(manifest("\x81\xa4name" + strings.Repeat("\x91", 100_000))...), message: "section[reconciler.manifest]"},
			{guest: "manifest of 5 MiB", bytes: ending(manifest("\x81\xa4name\xdb\x00\x50\x00\x00" + strings.Repeat("x", 5<<20))...), message: "longer than 4194304"},
			{guest: "negative limits", bytes: ending(manifest("\x81\xa6limits\x81\xa6memory\xff")...), message: "memory is negative"},
			{guest: "two manifests", bytes: ending(append(manifest("\x80"), manifest("\x80")...)...), message: "each needs a name of its own"},
			{guest: "requires what nobody has", bytes: ending(manifest("\x81\xa8requires\x91\xa4root")...), message: "root"},
		}),
		attack{
			guest: "manifest asks for all memory", bytes: grows, kind: abi.FailureMemory, message: "(memory 16Mi)",
			after: func(t *testing.T, w *world) {
				if !strings.Contains(string(w.log.text), "manifest requests more than the limits allow") {
					t.Errorf("the log does not say so: %s", w.log.text)
				}
			},
		},
	)
}
