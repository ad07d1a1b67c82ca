// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmctl/wasmctl/host/meter"
)

// custom is a custom section.
func custom(name string, payload ...byte) []byte {
	p := append(binary.AppendUvarint(nil, uint64(len(name))), name...)
	p = append(p, payload...)
	return append(binary.AppendUvarint([]byte{0}, uint64(len(p))), p...)
}

// part is a part of the name section.
func part(id byte, payload ...byte) []byte {
	return append(binary.AppendUvarint([]byte{id}, uint64(len(payload))), payload...)
}

// maxNames is the length beyond which names are omitted.
const maxNames = 8 << 20

// trap is a function that traps.
var trap = []byte{0x00}

// TestRewrite_TracesKeepNames: a stack trace of a metered module is the same
// text as of the module that it was made from, with names, without, and with
// some.
func TestRewrite_TracesKeepNames(t *testing.T) {
	// f1 calls f0, which traps. f2 has no part in it.
	bare := assemble(trap, []byte{0x20, 0, 0x10, 0}, []byte{0x20, 0})
	some := custom("name", bytes.Join([][]byte{
		part(0, append([]byte{3}, "mod"...)...),
		part(1, append([]byte{1, 1, 5}, "outer"...)...),
	}, nil)...)
	all := custom("name", bytes.Join([][]byte{
		part(1, append(append([]byte{2, 0, 5}, "inner"...), append([]byte{1, 5}, "outer"...)...)...),
		part(2, append([]byte{1, 0, 1, 0, 1}, 'p')...),
	}, nil)...)
	locals := custom("name", part(2, append([]byte{1, 0, 1, 0, 1}, 'p')...)...)
	for name, section := range map[string][]byte{"bare": nil, "some": some, "all": all, "locals only": locals} {
		wasm := append(bytes.Clone(bare), section...)
		_, perr := start(t, wasm, wazero.NewRuntimeConfig()).call(t.Context(), "f1", 0)
		_, merr := startMetered(t, wasm, meter.Config{}, wazero.NewRuntimeConfig()).call(t.Context(), "f1", 0)
		if perr == nil || !strings.Contains(perr.Error(), "unreachable") {
			t.Fatalf("%s: %v", name, perr)
		}
		if diff := cmp.Diff(perr.Error(), merr.Error()); diff != "" {
			t.Errorf("%s: plain -, metered +:\n%s", name, diff)
		}
		validate(t, wasm, nil)
	}
}

// TestRewrite_OmitsCustomSections: wazero would keep them in memory.
func TestRewrite_OmitsCustomSections(t *testing.T) {
	plain := assemble(trap)
	long := make([]byte, maxNames+1)
	wasm := append(bytes.Clone(plain), custom("reconciler.manifest", 1, 2, 3)...)
	wasm = append(append(wasm, custom(".debug_info", long...)...), custom("name", long...)...)
	if diff := cmp.Diff(rewrite(t, plain, meter.Config{}).Wasm, rewrite(t, wasm, meter.Config{}).Wasm); diff != "" {
		t.Error(diff)
	}
}

// TestRewrite_DamagedNames: a damaged name section is an error, as it is to
// wazero.
func TestRewrite_DamagedNames(t *testing.T) {
	for _, payload := range [][]byte{part(1, 200), {1, 200}, part(1, 1, 0, 5, 'x'), part(2, 1, 0, 9)} {
		if _, err := meter.Rewrite(append(assemble(trap), custom("name", payload...)...), meter.Config{}); err == nil {
			t.Errorf("%v is taken", payload)
		}
	}
	twice := append(append(assemble(trap), custom("name")...), custom("name")...)
	if _, err := meter.Rewrite(twice, meter.Config{}); err == nil {
		t.Error("two name sections are taken")
	}
}

// TestRewrite_HostSeesCaller: the refill function receives the instance that calls it.
func TestRewrite_HostSeesCaller(t *testing.T) {
	wasm := rewrite(t, assemble([]byte{0x03, 0x40, 0x0c, 0, 0x0b, 0x20, 0}), meter.Config{}).Wasm
	r := wazero.NewRuntime(t.Context())
	defer closeRuntime(t, r)
	var caller api.Module
	_, err := r.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
			caller = m
			panic(errBudget)
		}), nil, nil).Export(meter.RefillFunc).Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx := experimental.WithCompilationWorkers(t.Context(), 1)
	m, err := r.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.ExportedFunction("f0").Call(t.Context(), 1)
	if !errors.Is(err, errBudget) || caller != m {
		t.Errorf("ended with %v, asked by %v", err, caller)
	}
	if m.IsClosed() {
		t.Error("ending a call closes the instance: what is written about it is wrong")
	}
}
