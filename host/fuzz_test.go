// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// FuzzInspect: no bytes make Inspect panic, and bytes without a problem load.
func FuzzInspect(f *testing.F) {
	for _, seed := range [][]byte{
		nil, wasm.Empty, wasm.Modes, wasm.Calls, wasm.WASI, wasm.BadExports, wasm.BadImports, wasm.ABI2, wasm.Describe, wasm.Tables, wasm.StartTrap, wasm.Configure, echo(f),
		withManifest(f, wasm.Empty, &abi.Manifest{Name: "n", Requires: []string{"api_get"}}),
	} {
		f.Add(seed)
	}
	hostile, err := filepath.Glob("conformance/hostile/guests/*.wasm")
	if err != nil || len(hostile) == 0 {
		f.Fatal(hostile, err)
	}
	for _, file := range hostile {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		info := load.Inspect(t.Context(), b)
		if info.Size != int64(len(b)) {
			t.Fatalf("size %d of %d", info.Size, len(b))
		}
		if len(info.Problems) > 0 {
			return
		} // some of the seeds are hostile
		m, err := Load(t.Context(), b, Config{API: apiOf(nil), Limits: share.Limits{Timeout: 50 * time.Millisecond}})
		var ce *abi.CallError
		if err != nil {
			if !errors.As(err, &ce) { // start code may fail, and Inspect does not run it
				t.Fatalf("no problems, but Load: %v", err)
			}
			return
		}
		g, release, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Reconcile(t.Context(), request(0)); err != nil && !errors.As(err, &ce) {
			t.Fatal(err)
		}
		release()
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzHostFunctions: whatever a guest passes to a host function, it gets an
// answer, and nothing traps.
func FuzzHostFunctions(f *testing.F) {
	api := &scriptedAPI{}
	m := loaded(f, wasm.Calls, Config{API: apiOf(api)})
	g := acquire(f, m)
	f.Add([]byte("\x81\xa3key\xa4size"), sequence([]hostCall{{"api_get", [4]uint32{requestAt, 4, dstAt, 16}}, {"take", [4]uint32{dstAt, 2, 8}}}))
	f.Add([]byte{0x80}, sequence([]hostCall{{"config_get", [4]uint32{requestAt, 1, outside - 1, 0xffffffff}}, {"log", [4]uint32{0, requestAt, 9}}}))
	f.Add([]byte{0xc1}, sequence([]hostCall{{"random_get", [4]uint32{outside - 1, 1}}, {"metric", [4]uint32{0, 0xffffffff, 0xffffffff}}, {"budget", [4]uint32{9}}}))
	f.Fuzz(func(t *testing.T, memory, calls []byte) {
		records := min(len(calls)/20, 20)
		object := binary.LittleEndian.AppendUint32(calls[:records*20:records*20], uint32(records))
		api.f = func(context.Context, abi.Op, []byte) abi.Response { return abi.Response{Body: memory} }
		poke(t, g, requestAt, memory[:min(len(memory), 4096)])
		req := request(0)
		req.Object = object
		if _, err := g.Reconcile(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		api.calls = nil
	})
}

// FuzzResults: whatever an entry returns, the host has a result or an error of
// that call.
func FuzzResults(f *testing.F) {
	m := loaded(f, echo(f), Config{Limits: share.Limits{Timeout: 20 * time.Second}})
	g := acquire(f, m)
	f.Add([]byte("\x81\xa4keys\x91\x81\xa4name\xa1a"), uint32(14))
	f.Add([]byte("\x82\xa5apply\x91\x80\xa5prune\xc3"), uint32(16))
	f.Add([]byte{0x80}, uint32(1<<31))
	f.Fuzz(func(t *testing.T, result []byte, n uint32) {
		if n == echoSpin || len(result) > abi.MaxBytes/2 {
			return
		}
		object := echoLength(result, n)
		check := func(err error) {
			t.Helper()
			_, fault := errors.AsType[*abi.CallError](err)
			_, own := errors.AsType[*abi.ResultError](err)
			if err != nil && !fault && !own {
				t.Error(err)
			}
		}
		res, err := g.Reconcile(t.Context(), &abi.Request{Object: object})
		check(err)
		if d := res.Declared; d != nil && d.Empty() {
			t.Error("an empty Declared is not nil")
		}
		_, err = g.Finalize(t.Context(), &abi.Request{Object: object})
		check(err)
		_, err = g.ErrorPolicy(t.Context(), &abi.Failure{Object: object})
		check(err)
		keys, err := m.Map(t.Context(), event(object))
		check(err)
		if len(keys) > abi.MaxItems || err != nil && keys != nil {
			t.Errorf("%d keys, %v", len(keys), err)
		}
		_, err = m.Filter(t.Context(), event(object))
		check(err)
		m.last.Load().shared.use.Fresh.GiveBack(5) // the rate of instances must not slow the fuzzer down
	})
}
