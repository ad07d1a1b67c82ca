package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// Modes of the guest worse.wasm.
const (
	modeGood = byte(iota)
	modeTraps
	modeTrapsOnTenth
	modeSpins
	modeLeaks
	modeConflicts
	modeRequeues
	modeDeclares
	modeScript
)

// worse is the guest worse.wasm in a mode, with a digest of its own for each n.
func worse(mode byte, n int) []byte {
	at := bytes.Index(wasm.Worse, []byte("mode:"))
	out := bytes.Clone(wasm.Worse)
	out[at+len("mode:")] = mode
	return numbered(out, n)
}

// numbered is a module with one more custom section, and so another digest.
func numbered(module []byte, n int) []byte {
	payload := fmt.Appendf([]byte{1, 'n'}, "%d", n)
	return append(append(bytes.Clone(module), 0, byte(len(payload))), payload...)
}

// withManifest is the guest worse.wasm in a mode, with a manifest.
func withManifest(t *testing.T, mode byte, m *abi.Manifest) []byte {
	t.Helper()
	module, err := host.WithManifest(worse(mode, 0), m)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

func objectName(i int) string { return fmt.Sprintf("o%d", i) }

// operation is one that modeScript asks for.
type operation struct {
	op  abi.Op
	req map[string]any
}

// scripted is the guest worse.wasm asking for operations, with a manifest.
func scripted(t *testing.T, m *abi.Manifest, ops ...operation) []byte {
	t.Helper()
	module := worse(modeScript, 0)
	at := bytes.Index(module, []byte("script:")) + len("script:")
	for _, o := range ops {
		req, err := abi.AppendValue(nil, o.req)
		if err != nil {
			t.Fatal(err)
		}
		for number, op := range abi.Ops {
			if op == o.op {
				binary.LittleEndian.PutUint32(module[at:], uint32(number))
			}
		}
		binary.LittleEndian.PutUint32(module[at+4:], uint32(len(req)))
		at += 8 + copy(module[at+8:], req)
	}
	module, err := host.WithManifest(module, m)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// mayWrite is a manifest that asks for these kinds.
func mayWrite(resources ...string) *abi.Manifest {
	m := &abi.Manifest{Version: "1"}
	for _, r := range resources {
		m.Capabilities = append(m.Capabilities, abi.Capability{Resource: r, Verbs: []string{"get", "create", "patch", "update", "delete"}})
	}
	return m
}
