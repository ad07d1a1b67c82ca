// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// What a tool hands over reaches the guest byte for byte, and what it returns
// comes back so: neither has to be a message.
func TestModule_ExchangePassesBytes(t *testing.T) {
	m := loaded(t, withManifest(t, wasm.Echo, &abi.Manifest{Finalizer: "example.com/f"}), Config{})
	for _, result := range []string{"no msgpack at all", "\xc1", strings.Repeat("x", 1000)} {
		msg := binary.LittleEndian.AppendUint32([]byte("head"+result), uint32(len(result)))
		for _, export := range []string{abi.ExportReconcile, abi.ExportFinalize, abi.ExportMap, abi.ExportErrorPolicy} {
			value, got, err := m.Exchange(t.Context(), export, msg)
			if ptr, n := abi.UnpackPointer(value); err != nil || string(got) != result || ptr == 0 || int(n) != len(result) {
				t.Errorf("%s of %.20q: got %.20q at %d, %v", export, result, got, ptr, err)
			}
		}
	}
	if value, got, err := m.Exchange(t.Context(), abi.ExportFilter, []byte{7, 0, 0, 0}); err != nil || value != 7 || got != nil {
		t.Errorf("filter: got %d, %q, %v; want its number", value, got, err)
	}
	for _, export := range []string{abi.ExportConfigure, abi.ExportDescribe, abi.ExportBuffer, "teleport"} {
		if _, _, err := m.Exchange(t.Context(), export, nil); !errors.Is(err, ErrNoHook) {
			t.Errorf("%s: got %v, want ErrNoHook", export, err)
		}
	}
	if _, _, err := m.Exchange(t.Context(), abi.ExportReconcile, make([]byte, abi.MaxBytes+1)); !errors.Is(err, abi.ErrTooLarge) {
		t.Errorf("too large: got %v", err)
	}
}

// A guest that fails in an exchange loses its instance, and nothing else.
func TestModule_ExchangeSurvivesATrap(t *testing.T) {
	m := loaded(t, wasm.Buffers, Config{Concurrency: 1})
	for range 2 {
		_, _, err := m.Exchange(t.Context(), abi.ExportReconcile, make([]byte, 4096))
		if kind := callError(t, err).Kind; kind != abi.FailureTrap {
			t.Errorf("got kind %q, want a trap", kind)
		}
		if _, _, err := m.Exchange(t.Context(), abi.ExportReconcile, make([]byte, 100)); err != nil {
			t.Errorf("after the trap: %v", err)
		}
	}
}
