// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/meter"
	"github.com/wasmctl/wasmctl/host/share"
)

// recursive is a module whose reconcile calls a function of so many locals (of
// i64) that has this code, and may call itself as function 4.
func recursive(locals int, code []byte) []byte {
	u32 := func(n int) []byte { return binary.AppendU32(nil, uint32(n)) } //nolint:gosec // small
	sized := func(b []byte) []byte { return append(u32(len(b)), b...) }
	body := func(locals, code []byte) []byte { return sized(slices.Concat(locals, code, []byte{0x0b})) }
	export := func(name string, kind, index byte) []byte { return append(binary.AppendName(nil, name), kind, index) }
	none := []byte{0}
	out := []byte(binary.Header)
	for _, s := range []struct {
		id      byte
		entries [][]byte
	}{
		{binary.SectionType, [][]byte{{0x60, 0, 0}, {0x60, 1, 0x7f, 1, 0x7f}, {0x60, 2, 0x7f, 0x7f, 1, 0x7e}, {0x60, 0, 1, 0x7e}}},
		{binary.SectionFunction, [][]byte{{0}, {1}, {2}, {3}, {3}}},
		{binary.SectionMemory, [][]byte{{0, 1}}},
		{binary.SectionExport, [][]byte{export("reconciler_abi_1", 0, 0), export("buffer", 0, 1), export("reconcile", 0, 2), export("memory", 2, 0)}},
		{binary.SectionCode, [][]byte{
			body(none, nil), body(none, []byte{0x41, 0x80, 0x08}), body(none, []byte{0x10, 3}), body(none, []byte{0x10, 4}),
			body(slices.Concat([]byte{1}, u32(locals), []byte{0x7e}), code),
		}},
	} {
		out = binary.AppendSection(out, s.id, append(u32(len(s.entries)), slices.Concat(s.entries...)...))
	}
	return out
}

// frames are functions whose calls take much more of the stack than their locals.
func frames() map[string][]byte {
	self := []byte{0x10, 4}
	load := []byte{0x41, 0, 0x29, 0, 0} // i64.load of 0
	const n = 2_000
	operands := append(slices.Repeat(load, n), self...)
	operands = append(operands, slices.Repeat([]byte{0x7c}, n)...) // i64.add
	one := append(slices.Repeat(load, 1), self...)
	one = append(one, 0x7c)
	// Each block meets values of before and after another call, for each local.
	const locals, depth = 100, 150
	var set, read, met []byte
	for i := range byte(locals) {
		set = slices.Concat(set, load, []byte{0x21, i})
		read = append(read, 0x20, i, 0x7c)
	}
	met = append(met, slices.Repeat([]byte{0x02, 0x40}, depth)...)
	met = append(met, set...)
	for range depth {
		met = slices.Concat(met, []byte{0x41, 0, 0x28, 2, 0, 0x0d, 0}, set[:20*7], self, []byte{0x1a, 0x0b})
	}
	// The branch out of each block skips its sets.
	met = slices.Concat(set, met, load, read, self, []byte{0x7c})
	wide := slices.Concat([]byte{}, set, self, []byte{0x1a}, load, read)
	return map[string][]byte{"operands": recursive(1, operands), "one": recursive(1, one), "met": recursive(locals, met), "locals": recursive(locals, wide)}
}

// The memory of the host that a recursion takes has a bound that depends on the
// limit alone, however much of the stack a call takes beside its locals.
func TestStack_FramesOfAnyShapeAreBounded(t *testing.T) {
	for name, module := range frames() {
		for _, limit := range []int64{1 << 20, meter.DefaultMaxStack} {
			g := acquire(t, loaded(t, module, Config{Limits: share.Limits{Stack: limit}}))
			before := allocated()
			_, err := g.Reconcile(t.Context(), request(0))
			grown := allocated() - before
			if !errors.Is(err, share.ErrStack) || !strings.Contains(err.Error(), "stack overflow") {
				t.Errorf("%s: %v", name, err)
			}
			t.Logf("%s: limit %d, allocated %.1f times as much", name, limit, float64(grown)/float64(limit))
			if grown > 12*limit+1<<20 {
				t.Errorf("%s: %d bytes were allocated under a limit of %d", name, grown, limit)
			}
		}
	}
}
