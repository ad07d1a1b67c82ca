// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

func TestInspect_DescribesAModule(t *testing.T) {
	man := &abi.Manifest{Name: "n", Version: "1.2.3"}
	got := load.Inspect(t.Context(), withManifest(t, wasm.Spy, man))
	want := &load.Info{
		Digest: got.Digest, Size: got.Size, ABI: 1, Manifest: man,
		Memory: &load.Memory{Min: 2 * share.PageSize},
		Exports: []load.Export{
			{Name: "memory", Kind: "memory"},
			{Name: "reconciler_abi_1", Kind: "function", Type: "() -> ()"},
			{Name: "buffer", Kind: "function", Type: "(i32) -> (i32)"},
			{Name: "reconcile", Kind: "function", Type: "(i32, i32) -> (i64)"},
			{Name: "error_policy", Kind: "function", Type: "(i32, i32) -> (i64)"},
		},
		Imports: []load.Import{
			{Module: "reconciler_v1", Name: "api_get", Kind: "function", Type: "(i32, i32, i32, i32) -> (i64)"},
			{Module: "reconciler_v1", Name: "api_list", Kind: "function", Type: "(i32, i32, i32, i32) -> (i64)"},
		},
		Sections: got.Sections,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, s := range got.Sections {
		names = append(names, s.Name)
	}
	if got, want := strings.Join(names, ", "), "type, import, function, memory, export, code, custom reconciler.manifest"; got != want {
		t.Errorf("sections: got %s, want %s", got, want)
	}
	if !strings.HasPrefix(got.Digest, "sha256:") || len(got.Digest) != 7+64 {
		t.Errorf("digest %s", got.Digest)
	}
	if m := loaded(t, wasm.Spy, Config{}); m.Digest() != load.Inspect(t.Context(), wasm.Spy).Digest {
		t.Error("Inspect and Load differ in the digest")
	}
}

func TestInspect_Toolchain(t *testing.T) {
	field := func(name, tool, version string) string {
		s := func(v string) string { return string([]byte{byte(len(v))}) + v }
		return s(name) + "\x01" + s(tool) + s(version)
	}
	for section, want := range map[string]string{
		"\x02" + field("language", "Go", "go1.26.8") + field("processed-by", "Go cmd/compile", "go1.26.8"): "Go 1.26.8",
		"\x01" + field("processed-by", "rustc", "1.85.0"):                                                  "rustc 1.85.0",
		"\xff": "",
	} {
		if got := load.Inspect(t.Context(), withSection(wasm.Empty, "producers", []byte(section))).Toolchain; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := load.Inspect(t.Context(), withSection(wasm.Empty, "go:buildid", nil)).Toolchain; got != "Go" {
		t.Errorf("got %q, want Go", got)
	}
}

// Counts that the bytes do not back are found before wazero allocates by them.
func TestInspect_CountsThatLie(t *testing.T) {
	const huge = "\xff\xff\xff\xff\x0f"
	truncated := "ends too early: the file is truncated or damaged"
	module := func(id byte, payload string) []byte {
		return binary.AppendSection([]byte("\x00asm\x01\x00\x00\x00"), id, []byte(payload))
	}
	for _, tc := range []struct {
		wasm []byte
		want string
	}{
		{module(binary.SectionType, huge), "section type: " + truncated},
		{module(binary.SectionImport, huge), "section import: " + truncated},
		{module(binary.SectionFunction, huge), "section function: " + truncated},
		{module(binary.SectionTable, huge), "section table: " + truncated},
		{module(binary.SectionMemory, huge), "section memory: " + truncated},
		{module(binary.SectionGlobal, huge), "section global: " + truncated},
		{module(binary.SectionExport, huge), "section export: " + truncated},
		{module(binary.SectionElement, huge), "section element: " + truncated},
		{module(binary.SectionCode, huge), "section code: " + truncated},
		{module(binary.SectionData, huge), "section data: " + truncated},
		{module(binary.SectionTag, huge), "section tag: " + truncated},
		{module(binary.SectionElement, "\x01\x00\x41\x00\x0b"+huge), "section element: entry 0: " + truncated},
		{module(binary.SectionElement, "\x01\x05\x70"+huge), "section element: entry 0: " + truncated},
		{module(binary.SectionData, "\x01\x01"+huge), "section data: entry 0: " + truncated},
		{module(binary.SectionCode, "\x01\x08\x01"+huge+"\x7f\x0b"), "section code: entry 0: entry 0: function has more than 50000 locals"},
		{withSection(module(binary.SectionType, "\x00"), "name", []byte("\x01\x05"+huge)), "section custom name: " + truncated},
		{withSection(module(binary.SectionType, "\x00"), "name", []byte("\x02\x07\x01\x00"+huge)), "section custom name: entry 0: " + truncated},
	} {
		if got := load.Inspect(t.Context(), tc.wasm).Problems; !cmp.Equal(got, []string{tc.want}) {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
