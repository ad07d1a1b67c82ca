// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// Modes of the guest worse.wasm; its source describes each.
const (
	Good = byte(iota)
	Traps
	TrapsOnTenth
	Spins
	Leaks
	Conflicts
	Requeues
	Declares
	Script
)

// Worse returns the guest worse.wasm in a mode. Each n has a different digest.
func Worse(mode byte, n int) []byte {
	at := bytes.Index(wasm.Worse, []byte("mode:"))
	out := bytes.Clone(wasm.Worse)
	out[at+len("mode:")] = mode
	return Numbered(out, n)
}

// Laborious returns a guest that awaits a change, and whose other functions take long to compile. They take much memory if
// each has 20,000 blocks, which is the host's limit. The code of each n is different.
func Laborious(functions, blocks, n int) []byte {
	vector := func(count int, items ...[]byte) []byte {
		return append(binary.AppendUvarint(nil, uint64(count)), bytes.Join(items, nil)...)
	}
	sized := func(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }
	section := func(id byte, body []byte) []byte { return append([]byte{id}, sized(body)...) }
	body := []byte("\x01\x40\x7f") // a group of 64 locals of i32
	for i := range blocks {
		local := byte(i % 64)
		body = append(body, 0x02, 0x40, 0x20, 0x00, 0x0d, 0x00, 0x20, local, 0x41, 0x01, 0x6a, 0x21, (local+7)%64, 0x0b)
	}
	one := sized(append(body, 0x0b))
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, vector(4, []byte("\x60\x00\x00"), []byte("\x60\x01\x7f\x01\x7f"), []byte("\x60\x02\x7f\x7f\x01\x7e"), []byte("\x60\x01\x7f\x00"))),
		section(3, vector(3+functions, []byte{0, 1, 2}, bytes.Repeat([]byte{3}, functions))),
		section(5, []byte("\x01\x00\x01")),
		section(7, vector(4, []byte("\x06memory\x02\x00"), []byte("\x10reconciler_abi_1\x00\x00"), []byte("\x06buffer\x00\x01"), []byte("\x09reconcile\x00\x02"))),
		section(10, vector(3+functions,
			sized([]byte("\x00\x0b")),
			sized(append(append([]byte("\x00\x41"), address(1024+n)...), 0x0b)),
			sized([]byte("\x00\x42\x00\x0b")),
			bytes.Repeat(one, functions))),
	}, nil)
}

// address encodes the operand of i32.const in three bytes.
func address(n int) []byte { return []byte{byte(n)&0x7f | 0x80, byte(n>>7)&0x7f | 0x80, byte(n >> 14)} }

// Numbered returns a module with an additional custom section, and so a different digest.
func Numbered(module []byte, n int) []byte {
	payload := fmt.Appendf([]byte{1, 'n'}, "%d", n)
	return append(append(bytes.Clone(module), 0, byte(len(payload))), payload...)
}

// WithManifest returns the guest worse.wasm in a mode, with the manifests, one for each
// controller.
func WithManifest(t testing.TB, mode byte, m ...*abi.Manifest) []byte {
	t.Helper()
	return described(t, Worse(mode, 0), m...)
}

// Operation is an operation that a scripted guest requests.
type Operation struct {
	Op      abi.Op
	Request map[string]any
}

// Scripted returns the guest worse.wasm with a manifest and the operations that it
// requests.
func Scripted(t testing.TB, m *abi.Manifest, ops ...Operation) []byte {
	t.Helper()
	module := Worse(Script, 0)
	at := bytes.Index(module, []byte("script:")) + len("script:")
	for _, o := range ops {
		req, err := abi.AppendValue(nil, o.Request)
		if err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint32(module[at:], uint32(1+slices.Index(abi.Ops, o.Op)))
		binary.LittleEndian.PutUint32(module[at+4:], uint32(len(req)))
		at += 8 + copy(module[at+8:], req)
	}
	return described(t, module, m)
}

// Colored returns the guest worse.wasm with a manifest; it declares a ConfigMap with a
// color of four letters.
func Colored(t testing.TB, color string, m *abi.Manifest) []byte {
	t.Helper()
	return described(t, bytes.Replace(Worse(Declares, 0), []byte("blue"), []byte(color), 1), m)
}

// MayWrite returns a manifest that requests all rights on resources of the core group.
func MayWrite(resources ...string) *abi.Manifest {
	m := &abi.Manifest{Version: "1"}
	for _, r := range resources {
		m.Capabilities = append(m.Capabilities, abi.Capability{Resource: r, Verbs: []string{"get", "create", "patch", "update", "delete"}})
	}
	return m
}

// Judging returns the guest judges.wasm with a manifest. Its webhooks return a verdict, in the form of
// ABI.md; they trap if it is nil.
func Judging(t testing.TB, verdict map[string]any, m *abi.Manifest) []byte {
	t.Helper()
	module := bytes.Clone(wasm.Judges)
	at := bytes.Index(module, []byte("verdict:")) + len("verdict:")
	if verdict == nil {
		binary.LittleEndian.PutUint32(module[at:], math.MaxUint32)
		return described(t, module, m)
	}
	b, err := abi.AppendValue(nil, verdict)
	if err != nil || len(b) > 512 {
		t.Fatalf("a verdict of %d bytes: %v", len(b), err)
	}
	binary.LittleEndian.PutUint32(module[at:], uint32(len(b))) //nolint:gosec // at most 512
	copy(module[at+4:], b)
	return described(t, module, m)
}

// Finalizing returns the guest finalizes.wasm for ConfigMaps, with a finalizer. If fails is set, its finalize traps.
func Finalizing(t testing.TB, finalizer string, fails bool) []byte {
	t.Helper()
	module := bytes.Clone(wasm.Finalizes)
	if fails {
		module[bytes.Index(module, []byte("mode:"))+len("mode:")] = 1
	}
	return described(t, module, &abi.Manifest{Version: "1", For: &abi.Watch{Version: "v1", Kind: "ConfigMap"}, Finalizer: finalizer})
}

func described(t testing.TB, module []byte, m ...*abi.Manifest) []byte {
	t.Helper()
	out, err := load.WithManifest(module, m...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
