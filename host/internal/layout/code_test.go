// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"context"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/wasmctl/wasmctl/host/internal/vm"
)

// functions returns a module with n functions, one after the other exported as f: the
// last. Each adds its number to what the one before returns, so that f executes all.
func functions(n int) []byte {
	section := func(id byte, body []byte) []byte {
		return append(binary.AppendUvarint([]byte{id}, uint64(len(body))), body...)
	}
	count := binary.AppendUvarint(nil, uint64(n))
	types, code := append([]byte{}, count...), append([]byte{}, count...)
	for i := range n {
		types = append(types, 0)
		body := []byte{0} // no locals
		if i == 0 {
			body = append(body, 0x42, 0) // i64.const 0
		} else {
			body = append(append(body, 0x10), binary.AppendUvarint(nil, uint64(i-1))...) // call
		}
		body = append(append(append(body, 0x42), signed(i)...), 0x7c, 0x0b) // i64.const, i64.add, end
		code = append(append(code, binary.AppendUvarint(nil, uint64(len(body)))...), body...)
	}
	wasm := []byte("\x00asm\x01\x00\x00\x00")
	wasm = append(wasm, section(1, []byte{1, 0x60, 0, 1, 0x7e})...)
	wasm = append(wasm, section(3, types)...)
	wasm = append(wasm, section(7, append([]byte{1, 1, 'f', 0}, binary.AppendUvarint(nil, uint64(n-1))...))...)
	return append(wasm, section(10, code)...)
}

// signed is a number that is not negative, in signed LEB128.
func signed(n int) (b []byte) {
	for ; n > 0x3f; n >>= 7 {
		b = append(b, byte(n&0x7f|0x80))
	}
	return append(b, byte(n))
}

// compiled compiles a module of n functions.
func compiled(t *testing.T, n int) (r wazero.Runtime, module wazero.CompiledModule) {
	t.Helper()
	r = wazero.NewRuntime(t.Context())
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	module, err := r.CompileModule(t.Context(), functions(n))
	if err != nil {
		t.Fatal(err)
	}
	return r, module
}

// wantSum calls all functions.
func wantSum(t *testing.T, r wazero.Runtime, module wazero.CompiledModule, n int) {
	t.Helper()
	in, err := r.InstantiateModule(t.Context(), module, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	got, err := in.ExportedFunction("f").Call(t.Context())
	if err != nil || len(got) != 1 || got[0] != uint64(n*(n-1)/2) {
		t.Errorf("got %v, %v, want %d", got, err, n*(n-1)/2)
	}
}

// The fields of wazero are those that CodeOf reads: without this test nobody would notice
// that code stays in memory.
func TestCodeOf_FindsTheCodeOfThisWazero(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("SKIPPED: wazero compiles for amd64 and arm64")
	}
	const n = 5000
	_, module := compiled(t, n)
	if code := codeOf(module); len(code) < n*10 {
		t.Errorf("%d bytes of code for %d functions", len(code), n)
	}
	f, ok := fieldsOf(module)
	if !ok || f.lines.Len() != 0 {
		t.Errorf("found: %v, lines: %v", ok, f.lines)
	}
	interpreter := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter())
	module, err := interpreter.CompileModule(t.Context(), functions(2))
	if err != nil {
		t.Fatal(err)
	}
	if code := codeOf(module); code != nil {
		t.Errorf("an interpreter has %d bytes of code", len(code))
	}
	if code := codeOf(nil); code != nil {
		t.Errorf("nothing has %d bytes of code", len(code))
	}
}

// codeOf returns the machine code of a module. It is nil if the module is interpreted, or
// if wazero has changed. No other goroutine may use the runtime of the module meanwhile.
func codeOf(module vm.Compiled) []byte {
	f, ok := fieldsOf(module)
	if !ok {
		return nil
	}
	return f.code.Bytes()
}
