// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmctl/wasmctl/host/meter"
)

// functionOf is a module with one function, which has a parameter.
func functionOf(code []byte) []byte {
	section := func(id byte, b []byte) []byte {
		return append(binary.AppendUvarint([]byte{id}, uint64(len(b))), b...)
	}
	body := slices.Concat([]byte{0}, code, []byte{0x0b})
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), section(1, []byte{1, 0x60, 1, 0x7f, 0}), section(3, []byte{1, 0}),
		section(10, append(binary.AppendUvarint([]byte{1}, uint64(len(body))), body...)))
}

// dispatch is the shape of Go's functions: a loop with a br_table to n places, after each of which
// the function may return.
func dispatch(n int) []byte {
	b := slices.Concat([]byte{0x03, 0x40}, bytes.Repeat([]byte{0x02, 0x40}, n), []byte{0x20, 0, 0x0e})
	b = binary.AppendUvarint(b, uint64(n)) //nolint:gosec // counts fit
	for i := range n + 1 {
		b = binary.AppendUvarint(b, uint64(i)) //nolint:gosec // counts fit
	}
	return append(append(b, bytes.Repeat([]byte{0x0b, 0x20, 0, 0x04, 0x40, 0x0f, 0x0b}, n)...), 0x0b)
}

// The order of the blocks matters: wazero's time is quadratic in a chain, and linear for the
// targets of a br_table.
func TestRewrite_BoundsWhatAFunctionTakesToCompile(t *testing.T) {
	chain := func(link ...byte) func(n int) []byte {
		return func(n int) []byte { return bytes.Repeat(link, n) }
	}
	nest := func(begin, end []byte) func(n int) []byte {
		return func(n int) []byte { return append(bytes.Repeat(begin, n), bytes.Repeat(end, n)...) }
	}
	for _, tc := range []struct {
		name  string
		shape func(n int) []byte
		most  int // is not refused; three times as many are
	}{
		{"chain of blocks", chain(0x02, 0x40, 0x0b), 20_000},
		{"chain of ifs", chain(0x20, 0, 0x04, 0x40, 0x0b), 20_000},
		{"chain of arms", chain(0x20, 0, 0x04, 0x40, 0x05, 0x0b), 20_000},
		{"chain of loops", chain(0x03, 0x40, 0x20, 0, 0x0d, 0, 0x0b), 10_000},
		{"nested blocks", nest([]byte{0x02, 0x40}, []byte{0x0b}), 20_000},
		{"nested ifs", nest([]byte{0x20, 0, 0x04, 0x40}, []byte{0x0b}), 20_000},
		{"nested loops", nest([]byte{0x03, 0x40}, []byte{0x20, 0, 0x0d, 0, 0x0b}), 10_000},
		{"branches out of a block", func(n int) []byte {
			return slices.Concat([]byte{0x02, 0x40}, bytes.Repeat([]byte{0x20, 0, 0x0d, 0}, n), []byte{0x0b})
		}, 20_000},
		{"dispatch", dispatch, 95_000},
	} {
		if _, err := meter.Rewrite(functionOf(tc.shape(tc.most)), meter.Config{}); err != nil {
			t.Errorf("%s: %d are refused: %v", tc.name, tc.most, err)
		}
		if _, err := meter.Rewrite(functionOf(tc.shape(3*tc.most)), meter.Config{}); err == nil || !strings.Contains(err.Error(), "blocks and branches") {
			t.Errorf("%s: %d are not refused: %v", tc.name, 3*tc.most, err)
		}
	}
}

// The depth after an if with long arms is the depth at its beginning.
func TestRewrite_ArmsOfAnIfAreNotOneChain(t *testing.T) {
	arm := bytes.Repeat([]byte{0x02, 0x40, 0x0b}, 1000)
	one := slices.Concat([]byte{0x20, 0, 0x04, 0x40}, arm, []byte{0x05}, arm, []byte{0x0b})
	if _, err := meter.Rewrite(functionOf(bytes.Repeat(one, 90)), meter.Config{}); err != nil {
		t.Error(err)
	}
}

// BenchmarkCompile_Blocks is what wazero takes for functions of many blocks, by how these
// follow each other.
func BenchmarkCompile_Blocks(b *testing.B) {
	ifs := func(n int) []byte { return bytes.Repeat([]byte{0x20, 0, 0x04, 0x40, 0x0b}, n) }
	for _, f := range []struct {
		name string
		code []byte
	}{
		{"chain of 10,000", ifs(10_000)}, {"chain of 20,000", ifs(20_000)}, {"chain of 40,000", ifs(40_000)}, {"br_table to 80,000", dispatch(80_000)},
	} {
		b.Run(f.name, func(b *testing.B) {
			for b.Loop() {
				r := wazero.NewRuntime(b.Context())
				if _, err := r.CompileModule(b.Context(), functionOf(f.code)); err != nil {
					b.Fatal(err)
				}
				_ = r.Close(b.Context())
			}
		})
	}
}
