// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bytes"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// Memory is the same, whether wazero or the host puts the data there, and wazero takes
// the module without it.
func TestDetach_MemoryIsTheSame(t *testing.T) {
	for name, module := range map[string][]byte{"modes": wasm.Modes, "tables": wasm.Tables} {
		r := wazero.NewRuntime(t.Context())
		with, err := r.InstantiateWithConfig(t.Context(), module, wazero.NewModuleConfig().WithName("with").WithStartFunctions())
		if err != nil {
			t.Fatal(err)
		}
		want, _ := with.Memory().Read(0, with.Memory().Size())
		rest, data := Detach(module, int64(len(want)))
		segments, ok := Segments(data, int64(len(want)))
		if !ok || len(segments) == 0 {
			t.Errorf("%s: not detached: %v", name, ok)
		}
		without, err := r.InstantiateWithConfig(t.Context(), rest, wazero.NewModuleConfig().WithName("without").WithStartFunctions())
		if err != nil {
			t.Fatal(err)
		}
		got, _ := without.Memory().Read(0, without.Memory().Size())
		for _, s := range segments {
			copy(got[s.At:], s.Bytes)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: memory differs", name)
		}
	}
}

// What is not plain is left to wazero.
func TestDetach_LeavesWhatIsNotPlain(t *testing.T) {
	const memory = 64 << 10
	segment := func(s string) []byte { return append([]byte{1}, s...) }
	for name, data := range map[string][]byte{
		"passive":           segment("\x01\x03abc"),
		"of another memory": segment("\x02\x00\x41\x00\x0b\x01a"),
		"at a global":       segment("\x00\x23\x00\x0b\x01a"),
		"computed":          segment("\x00\x41\x00\x41\x01\x6a\x0b\x01a"),
		"behind the end":    segment("\x00\x41\xff\xff\x03\x0b\x02ab"),
		"before the start":  segment("\x00\x41\x7f\x0b\x01a"),
		"too short":         segment("\x00\x41\x00\x0b\x02a"),
		"too long":          segment("\x00\x41\x00\x0b\x01ab"),
		"too many":          []byte("\x02\x00\x41\x00\x0b\x01a"),
	} {
		module := binary.AppendSection([]byte(binary.Header), binary.SectionData, data)
		if rest, got := Detach(module, memory); got != nil || !bytes.Equal(rest, module) {
			t.Errorf("%s: detached % x", name, got)
		}
	}
	plain := binary.AppendSection([]byte(binary.Header), binary.SectionData, segment("\x00\x41\xfe\xff\x03\x0b\x02ab"))
	if _, got := Detach(plain, memory); got == nil {
		t.Error("the last two bytes are left")
	}
	if _, got := Detach(append(plain, plain[len(binary.Header):]...), memory); got != nil {
		t.Error("two sections are detached")
	}
	counted := binary.AppendSection([]byte(binary.Header), binary.SectionDataCount, []byte{2})
	if _, got := Detach(append(counted, plain[len(binary.Header):]...), memory); got != nil {
		t.Error("another number of segments is detached")
	}
}
