// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// benchObject is an object of about 4 KiB: a map of one long string.
func benchObject() []byte {
	return encoded(map[string]any{"data": string(bytes.Repeat([]byte("x"), 4<<10))})
}

// BenchmarkReconcile_Empty4KiB is the host's own cost of one reconcile: a guest
// that does nothing, with a context that can be cancelled, as the applier's.
func BenchmarkReconcile_Empty4KiB(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	m := loaded(b, wasm.Empty, Config{API: apiOf(nil)})
	req := &abi.Request{
		ID: "8f3a-42", Controller: "configmapgenerator", Attempt: 1, Object: benchObject(),
		Reason: abi.Reason{Type: abi.ReasonObjectUpdated}, Key: abi.Key{Namespace: "default", Name: "hello"},
	}
	b.ReportAllocs()
	for b.Loop() {
		guest, release, err := m.Acquire(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := guest.Reconcile(ctx, req); err != nil {
			b.Fatal(err)
		}
		release()
	}
}

// BenchmarkLoad_Empty is loading without a cache, one instance included.
func BenchmarkLoad_Empty(b *testing.B) {
	for b.Loop() {
		m, err := Load(b.Context(), wasm.Empty, Config{})
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMap_TwoObjects4KiB is the host's own cost of asking map about one
// change: two objects handed over, one key returned.
func BenchmarkMap_TwoObjects4KiB(b *testing.B) {
	m := loaded(b, echo(b), Config{})
	ev := event(append(benchObject(), echoObject(encodeKeys(abi.Key{Namespace: "default", Name: "web"}))...))
	ev.Old = benchObject()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Map(b.Context(), ev); err != nil {
			b.Fatal(err)
		}
	}
}
