// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wasmctl/wasmctl/host/meter"
)

var (
	errStack  = errors.New("stack used up")
	errBudget = errors.New("fuel used up")
)

// slice is the fuel that the tests' host grants at a time.
const slice = 1 << 20

// fuelBudget is the host's side of one metered instance.
type fuelBudget struct {
	fuel, stack api.MutableGlobal
	maxStack    int64
	granted     int64 // by refills and at the start of a call
	budget      int64 // no more is granted; 0 is not bounded
	refills     int
	lowest      int64           // the counter, when the host was asked
	stop        context.Context // ends the next slice; nil for none
}

// refill is the function that metered modules import.
func (k *fuelBudget) refill(_ context.Context, mod api.Module, _ []uint64) {
	if k.fuel == nil { // start code runs
		k.bind(mod)
	}
	if int64(k.stack.Get()) < 0 {
		panic(errStack)
	}
	k.refills++
	k.lowest = min(k.lowest, int64(k.fuel.Get()))
	if k.stop != nil && k.stop.Err() != nil {
		panic(k.stop.Err())
	}
	if k.budget > 0 && k.spent() > k.budget {
		panic(errBudget)
	}
	k.granted += slice
	k.fuel.Set(k.fuel.Get() + slice)
}

func (k *fuelBudget) bind(mod api.Module) {
	k.fuel = mod.ExportedGlobal(meter.FuelGlobal).(api.MutableGlobal)
	k.stack = mod.ExportedGlobal(meter.StackGlobal).(api.MutableGlobal)
}

// spent is the fuel that the instance has used.
func (k *fuelBudget) spent() int64 { return k.granted - int64(k.fuel.Get()) }

func closeRuntime(tb testing.TB, r wazero.Runtime) {
	tb.Helper()
	if err := r.Close(context.Background()); err != nil {
		tb.Error(err)
	}
}

func closeAfter(tb testing.TB, r wazero.Runtime) {
	tb.Helper()
	tb.Cleanup(func() { closeRuntime(tb, r) })
}

// link makes the host module of k in r.
func (k *fuelBudget) link(tb testing.TB, r wazero.Runtime) {
	tb.Helper()
	_, err := r.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(k.refill), nil, nil).Export(meter.RefillFunc).Instantiate(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
}

// guest is an instance, metered or not.
type guest struct {
	api.Module
	fuelBudget *fuelBudget // nil if not metered
}

// call calls an export, as a host would.
func (g *guest) call(ctx context.Context, name string, args ...uint64) ([]uint64, error) {
	if g.fuelBudget != nil {
		g.fuelBudget.stack.Set(uint64(g.fuelBudget.maxStack))
	}
	return g.ExportedFunction(name).Call(ctx, args...)
}

// start instantiates a module with WASI, in a runtime of its own.
func start(tb testing.TB, wasm []byte, cfg wazero.RuntimeConfig) *guest {
	tb.Helper()
	r := wazero.NewRuntimeWithConfig(tb.Context(), cfg)
	closeAfter(tb, r)
	wasi_snapshot_preview1.MustInstantiate(tb.Context(), r)
	mod, err := r.InstantiateWithConfig(tb.Context(), wasm,
		wazero.NewModuleConfig().WithStartFunctions("_initialize").WithSysNanotime().WithSysWalltime())
	if err != nil {
		tb.Fatal(err)
	}
	return &guest{Module: mod}
}

// startMetered meters and instantiates a module.
func startMetered(tb testing.TB, wasm []byte, mc meter.Config, cfg wazero.RuntimeConfig) *guest {
	tb.Helper()
	out := rewrite(tb, wasm, mc)
	r := wazero.NewRuntimeWithConfig(tb.Context(), cfg)
	closeAfter(tb, r)
	wasi_snapshot_preview1.MustInstantiate(tb.Context(), r)
	k := &fuelBudget{maxStack: out.MaxStack}
	k.link(tb, r)
	mod, err := r.InstantiateWithConfig(tb.Context(), out.Wasm,
		wazero.NewModuleConfig().WithStartFunctions("_initialize").WithSysNanotime().WithSysWalltime())
	if err != nil {
		tb.Fatal(err)
	}
	k.bind(mod)
	return &guest{Module: mod, fuelBudget: k}
}

func rewrite(tb testing.TB, wasm []byte, cfg meter.Config) *meter.Output {
	tb.Helper()
	out, err := meter.Rewrite(wasm, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func read(tb testing.TB, file string) []byte {
	tb.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// rustGuest returns the Rust guest, or nil if it was not built. It is not in the repository,
// because it contains code of others.
func rustGuest(tb testing.TB) []byte {
	tb.Helper()
	b, err := os.ReadFile("testdata/rustguest.wasm")
	if err != nil {
		tb.Log("SKIPPED: the Rust guest is not built: host/meter/testdata/build.sh builds it, with a Rust toolchain")
		return nil
	}
	return b
}
