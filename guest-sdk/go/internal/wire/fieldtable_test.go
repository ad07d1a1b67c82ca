// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestFieldTable_FindsItsNamesAndNoOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	name := func() string {
		b := make([]byte, 1+rng.IntN(20))
		for i := range b {
			b[i] = "aab"[rng.IntN(3)] // many names differ only in one byte
		}
		return string(b)
	}
	for range 300 {
		known, fields := map[string]bool{}, []field{}
		for range rng.IntN(50) {
			if n := name(); !known[n] {
				known[n] = true
				fields = append(fields, field{name: n})
			}
		}
		table := newFieldTable(fields)
		for _, f := range append(fields, field{name: name()}, field{}) {
			after := name()[:rng.IntN(2)] // the name may be at the end of the memory
			b := []byte("x" + f.name + after)
			found := table.find(unsafe.Add(unsafe.Pointer(&b[0]), 1), len(f.name), len(b) > 8)
			if known[f.name] != (found != nil) || found != nil && found.name != f.name {
				t.Fatalf("%q of %v: found %v", f.name, known, found)
			}
		}
	}
}
