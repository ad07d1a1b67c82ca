// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmctl/wasmctl/host/meter"
)

// assemble writes a module of one memory, a table of all its functions, and
// functions of type (i32) -> (i32), each exported as "f" and its number. Each
// body is given without its end.
func assemble(bodies ...[]byte) []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, elements ...[]byte) {
		p := binary.AppendUvarint(nil, uint64(len(elements)))
		for _, e := range elements {
			p = append(p, e...)
		}
		out = binary.AppendUvarint(append(out, id), uint64(len(p)))
		out = append(out, p...)
	}
	var funcs, exports, code [][]byte
	var elements []byte
	for i, b := range bodies {
		elements = append(elements, byte(i))
		funcs = append(funcs, []byte{0})
		exports = append(exports, []byte{2, 'f', byte('0' + i), 0, byte(i)})
		body := append(append([]byte{1, 1, i32}, b...), 0x0b) // local 1 is an i32
		code = append(code, append(binary.AppendUvarint(nil, uint64(len(body))), body...))
	}
	section(1, []byte{0x60, 1, i32, 1, i32})
	section(3, funcs...)
	section(4, []byte{0x70, 0, byte(len(bodies))})
	section(5, []byte{0, 1})
	section(7, exports...)
	section(9, append([]byte{0, 0x41, 0, 0x0b, byte(len(bodies))}, elements...))
	section(10, code...)
	return out
}

func repeat(n int, b ...byte) []byte { return bytes.Repeat(b, n) }

// TestRewrite_StopsWithinBudget: a guest that spins is ended by the refill
// function, wherever it spins, and the counter is never far below zero when it
// is asked.
func TestRewrite_StopsWithinBudget(t *testing.T) {
	long := append(repeat(70_000, 0x20, 0, 0x1a), 0x20, 0) // local.get 0, drop
	calls := append(repeat(300, 0x20, 0, 0x10, 0, 0x1a), 0x20, 0)
	for _, c := range []struct {
		name   string
		export string
		wasm   []byte
	}{
		{"loop", "f0", assemble([]byte{0x03, 0x40, 0x0c, 0, 0x0b, 0x20, 0})},
		{"conditional loop", "f0", assemble([]byte{0x03, 0x40, 0x41, 1, 0x0d, 0, 0x0b, 0x20, 0})},
		{"loop by table", "f0", assemble([]byte{0x03, 0x40, 0x41, 1, 0x0e, 1, 0, 0, 0x0b, 0x20, 0})},
		{"loop that selects", "f0", assemble(slices.Concat([]byte{0x03, 0x40, 0x02, 0x40, 0x02, 0x40, 0x20, 1, 0x0e, 1, 0, 1},
			[]byte{0x0b, 0x41, 1, 0x21, 1, 0x0c, 1}, []byte{0x0b, 0x41, 0, 0x21, 1, 0x0c, 0}, []byte{0x0b, 0x20, 0}))},
		{"loop with a parameter", "f0", assemble([]byte{0x20, 0, 0x03, 0, 0x0c, 0, 0x0b})},
		{"loop in a loop", "f0", assemble([]byte{0x03, 0x40, 0x03, 0x40, 0x0c, 1, 0x0b, 0x0b, 0x20, 0})},
		{"long straight code, many times", "f2", assemble(long, calls, []byte{0x03, 0x40, 0x20, 0, 0x10, 1, 0x1a, 0x0c, 0, 0x0b, 0x20, 0})},
		{"short functions, many times", "f2", assemble(
			append(repeat(450, 0x20, 0, 0x1a), 0x20, 0), append(repeat(3000, 0x20, 0, 0x10, 0, 0x1a), 0x20, 0),
			[]byte{0x03, 0x40, 0x20, 0, 0x10, 1, 0x1a, 0x0c, 0, 0x0b, 0x20, 0})},
		{"short functions by table, many times", "f2", assemble(
			append(repeat(450, 0x20, 0, 0x1a), 0x20, 0), append(repeat(3000, 0x20, 0, 0x41, 0, 0x11, 0, 0, 0x1a), 0x20, 0),
			[]byte{0x03, 0x40, 0x20, 0, 0x10, 1, 0x1a, 0x0c, 0, 0x0b, 0x20, 0})},
		{"short functions between branches, many times", "f2", assemble(
			append(repeat(450, 0x20, 0, 0x1a), 0x20, 0),
			slices.Concat([]byte{0x02, 0x40}, repeat(500, append(repeat(30, 0x20, 0, 0x10, 0, 0x1a), 0x41, 0, 0x0d, 0)...), []byte{0x0b, 0x20, 0}),
			[]byte{0x03, 0x40, 0x20, 0, 0x10, 1, 0x1a, 0x0c, 0, 0x0b, 0x20, 0})},
		{"short functions between blocks, many times", "f2", assemble(
			append(repeat(450, 0x20, 0, 0x1a), 0x20, 0),
			slices.Concat(repeat(500, slices.Concat([]byte{0x02, 0x40}, repeat(9, 0x20, 0, 0x10, 0, 0x1a))...),
				repeat(500, append(append([]byte{0x41, 0, 0x0d, 0}, repeat(30, 0x20, 0, 0x10, 0, 0x1a)...), 0x0b)...), []byte{0x20, 0}),
			[]byte{0x03, 0x40, 0x20, 0, 0x10, 1, 0x1a, 0x0c, 0, 0x0b, 0x20, 0})},
		{"doubling calls", "f0", assemble([]byte{
			0x20, 0, 0x45, 0x04, 0x40, 0x41, 0, 0x0f, 0x0b,
			0x20, 0, 0x41, 1, 0x6b, 0x10, 0, 0x20, 0, 0x41, 1, 0x6b, 0x10, 0, 0x6a,
		})},
		{"filling memory", "f0", assemble([]byte{0x03, 0x40, 0x41, 0, 0x41, 0, 0x41, 0x80, 0x80, 4, 0x01, 0xfc, 0x0b, 0, 0x0c, 0, 0x0b, 0x20, 0})},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := startMetered(t, c.wasm, meter.Config{}, wazero.NewRuntimeConfig())
			g.fuelBudget.budget = 5 * slice
			_, err := g.call(t.Context(), c.export, 60)
			if !errors.Is(err, errBudget) {
				t.Fatalf("ended with %v", err)
			}
			if g.fuelBudget.lowest < -3<<17 {
				t.Errorf("the counter was at %d when the host was asked", g.fuelBudget.lowest)
			}
			if !strings.Contains(err.Error(), meter.RefillFunc) {
				t.Errorf("trace does not name what ended the call: %v", err)
			}
		})
	}
}

// TestRewrite_LongCode: what comes where straight code is just
// long enough for one more look at the counter does not matter.
func TestRewrite_LongCode(t *testing.T) {
	ends := [][]byte{
		{0x0c, 0},          // br
		{0x20, 0, 0x0d, 0}, // br_if
		{0xd2, 0, 0x1a},    // ref.func
		{0x20, 0, 0x20, 0, 0x20, 0, 0xfc, 0x0b, 0}, // memory.fill
	}
	for n := 1<<17 - 12; n < 1<<17+2; n++ {
		for _, end := range ends {
			body := slices.Concat([]byte{0x03, 0x40}, repeat(n, 0x20, 0, 0x1a), end, []byte{0x0b, 0x20, 0})
			rewrite(t, assemble(body), meter.Config{})
		}
	}
}

// TestRewrite_SelectingLoopWithParameter: a branch to the head of a loop that selects a
// block takes the parameter along, so it cannot lead to the block at once.
func TestRewrite_SelectingLoopWithParameter(t *testing.T) {
	wasm := assemble(slices.Concat([]byte{0x20, 0, 0x03, 0}, []byte{0x02, 0x40, 0x02, 0x40, 0x20, 1, 0x0e, 1, 0, 1},
		[]byte{0x0b, 0x41, 42, 0x41, 1, 0x21, 1, 0x0c, 1}, []byte{0x0b, 0x0b}))
	got, err := startMetered(t, wasm, meter.Config{}, wazero.NewRuntimeConfig()).call(t.Context(), "f0", 5)
	if err != nil || got[0] != 42 {
		t.Errorf("got %v, %v, want 42", got, err)
	}
}

// TestRewrite_RecursionIsBounded: recursion without end, direct or through a
// table, stops at a few megabytes of the host's memory, not at a hundred.
func TestRewrite_RecursionIsBounded(t *testing.T) {
	used := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	many := []byte{0x20, 0} // f2 holds 100 values across a call
	for range 100 {
		many = append(many, 0x20, 0, 0x10, 2)
	}
	wasm := assemble(
		[]byte{0x20, 0, 0x10, 0, 0x41, 1, 0x6a},
		[]byte{0x20, 0, 0x20, 0, 0x11, 0, 0, 0x41, 1, 0x6a},
		append(many, repeat(100, 0x6a)...))
	g := start(t, wasm, wazero.NewRuntimeConfig())
	plain := used(func() {
		if _, err := g.call(t.Context(), "f0", 1); err == nil {
			t.Error("recursion ended well")
		}
	})
	t.Logf("unmetered: %d MiB", plain>>20)
	for i, export := range []string{"f0", "f1", "f2"} {
		m := startMetered(t, wasm, meter.Config{}, wazero.NewRuntimeConfig())
		var err error
		metered := used(func() { _, err = m.call(t.Context(), export, uint64(i)) })
		if !errors.Is(err, errStack) {
			t.Fatalf("%s ended with %v", export, err)
		}
		t.Logf("%s: %d MiB", export, metered>>20)
		if metered > 24<<20 {
			t.Errorf("%s took %d bytes", export, metered)
		}
	}
}

// TestRewrite_TailCallsUseNoStack: what takes its caller's place takes its
// stack too, so a loop of tail calls does not run out of it, only of fuel.
func TestRewrite_TailCallsUseNoStack(t *testing.T) {
	// n == 0 ? 7 : f(n-1), directly in f0 and through the table in f1; f2 needs
	// stack, so that f0 and f1 count theirs.
	head := []byte{0x20, 0, 0x45, 0x04, 0x40, 0x41, 7, 0x10, 2, 0x0f, 0x0b, 0x20, 0, 0x41, 1, 0x6b}
	deep := []byte{0x20, 0, 0x41, 100, 0x4b, 0x04, 0x40, 0x20, 0, 0x10, 2, 0x1a, 0x0b, 0x20, 0}
	cfg := wazero.NewRuntimeConfig().WithCoreFeatures(genFeatures)
	wasm := assemble(append(slices.Clip(head), 0x12, 0), append(slices.Clip(head), 0x41, 1, 0x13, 0, 0), deep)
	for _, export := range []string{"f0", "f1"} {
		g := startMetered(t, wasm, meter.Config{MaxStack: 2000}, cfg)
		if res, err := g.call(t.Context(), export, 100_000); err != nil || res[0] != 7 {
			t.Errorf("%s: %v %v", export, res, err)
		}
		g.fuelBudget.budget = slice
		if _, err := g.call(t.Context(), export, 1<<31); !errors.Is(err, errBudget) {
			t.Errorf("%s ended with %v", export, err)
		}
	}
}

// TestRewrite_StackIsGivenBack: calls one after the other do not add up, and
// recursion as deep as the stack allows works again and again.
func TestRewrite_StackIsGivenBack(t *testing.T) {
	// f0(n) = n == 0 ? 0 : f0(n-1) + 1; f1 calls f0(1000) n times.
	down := []byte{0x20, 0, 0x45, 0x04, 0x40, 0x41, 0, 0x0f, 0x0b, 0x20, 0, 0x41, 1, 0x6b, 0x10, 0, 0x41, 1, 0x6a}
	often := []byte{
		0x03, 0x40, 0x41, 0xe8, 7, 0x10, 0, 0x1a, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b, 0x20, 0,
	}
	g := startMetered(t, assemble(down, often), meter.Config{MaxStack: 150_000}, wazero.NewRuntimeConfig())
	if _, err := g.call(t.Context(), "f1", 500); err != nil {
		t.Fatal(err)
	}
	if _, err := g.call(t.Context(), "f0", 10_000); !errors.Is(err, errStack) {
		t.Fatalf("ended with %v", err)
	}
}

// TestRewrite_IsDeterministic: the same module gives the same bytes, and the
// same input is charged the same, in whatever slices the host refills.
func TestRewrite_IsDeterministic(t *testing.T) {
	loops := read(t, "testdata/loops.wasm")
	first := rewrite(t, loops, meter.Config{})
	var fuel []int64
	for range 3 {
		if again := rewrite(t, loops, meter.Config{}); !bytes.Equal(first.Wasm, again.Wasm) {
			t.Fatal("rewriting twice gives different bytes")
		}
		g := startMetered(t, loops, meter.Config{}, wazero.NewRuntimeConfig())
		if _, err := g.call(t.Context(), "sieve", 100_000); err != nil {
			t.Fatal(err)
		}
		fuel = append(fuel, g.fuelBudget.spent())
	}
	if fuel[0] == 0 || fuel[0] != fuel[1] || fuel[1] != fuel[2] {
		t.Errorf("fuel of three runs: %v", fuel)
	}
}

// TestRewrite_Guests: the guests of this repository behave the same.
func TestRewrite_Guests(t *testing.T) {
	loops, rust := read(t, "testdata/loops.wasm"), rustGuest(t)
	for _, c := range []struct {
		wasm   []byte
		export string
		n      uint64
	}{{loops, "tight", 1000}, {loops, "memory_loop", 1000}, {loops, "sieve", 10_000}, {loops, "fib", 15}, {rust, "msgpack", 2}} {
		if c.wasm == nil {
			continue
		}
		plain := start(t, c.wasm, wazero.NewRuntimeConfig())
		metered := startMetered(t, c.wasm, meter.Config{}, wazero.NewRuntimeConfig())
		a, aerr := plain.call(t.Context(), c.export, c.n)
		b, berr := metered.call(t.Context(), c.export, c.n)
		if aerr != nil || berr != nil || a[0] != b[0] || !bytes.Equal(memory(plain), memory(metered)) {
			t.Errorf("%s: plain %v %v, metered %v %v", c.export, a, aerr, b, berr)
		}
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "wasm", "*.wasm"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no guests: %v", err)
	}
	built, _ := filepath.Glob(filepath.Join("..", "..", "bin", "examples", "*.wasm"))
	if len(built) == 0 {
		t.Log("SKIPPED: no examples are built (make guests)")
	}
	switch { // they take seconds each to compile
	case testing.Short():
		built = nil
	case os.Getenv("METER_LONG") == "" && len(built) > 1:
		built = built[:1]
	}
	for _, f := range append(files, built...) {
		wasm := read(t, f)
		if strings.HasSuffix(f, "init_spin.wasm") || len(wasm) < 10_000 && compile(t, wasm) != nil {
			continue // unmetered, it does not end, or it is invalid on purpose
		}
		validate(t, wasm, nil)
		compareStubbed(t, f, wasm)
	}
}

// compareStubbed runs all exports of a guest with host functions that only
// answer 0.
func compareStubbed(t *testing.T, name string, wasm []byte) {
	t.Helper()
	var traces [2]string
	for i, form := range [][]byte{wasm, rewrite(t, wasm, meter.Config{}).Wasm} {
		r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig())
		compiled, err := r.CompileModule(t.Context(), form)
		if err != nil {
			t.Fatal(err)
		}
		k := &fuelBudget{maxStack: meter.DefaultMaxStack, budget: 1 << 30}
		stub(t, r, compiled, k)
		mod, err := r.InstantiateModule(t.Context(), compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
		if err != nil {
			traces[i] = startFunction.ReplaceAllString(err.Error(), "")
			closeRuntime(t, r)
			continue
		}
		g := &guest{Module: mod}
		if i == 1 {
			k.bind(mod)
			g.fuelBudget = k
		}
		for _, export := range []string{"describe", "buffer", "reconciler_abi_1"} {
			fn := mod.ExportedFunction(export)
			if fn == nil {
				continue
			}
			res, err := g.call(t.Context(), export, make([]uint64, len(fn.Definition().ParamTypes()))...)
			traces[i] += errText(err)
			for _, v := range res {
				traces[i] += " " + string(binary.AppendUvarint(nil, v))
			}
		}
		traces[i] += string(memory(mod))
		closeRuntime(t, r)
	}
	if traces[0] != traces[1] {
		t.Errorf("%s: plain and metered differ", name)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// stub links all that a guest imports: the refill function of k, and functions
// that answer 0.
func stub(t *testing.T, r wazero.Runtime, compiled wazero.CompiledModule, k *fuelBudget) {
	t.Helper()
	builders := map[string]wazero.HostModuleBuilder{}
	for _, imp := range compiled.ImportedFunctions() {
		module, name, _ := imp.Import()
		if builders[module] == nil {
			builders[module] = r.NewHostModuleBuilder(module)
		}
		f := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) { clear(stack) })
		if module == meter.ImportModule {
			f = k.refill
		}
		builders[module].NewFunctionBuilder().WithGoModuleFunction(f, imp.ParamTypes(), imp.ResultTypes()).Export(name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRewrite_RefillIsSafePoint: the garbage collector, which stops all
// goroutines, does not wait for a guest that spins.
func TestRewrite_RefillIsSafePoint(t *testing.T) {
	g := startMetered(t, assemble([]byte{0x03, 0x40, 0x0c, 0, 0x0b, 0x20, 0}), meter.Config{}, wazero.NewRuntimeConfig())
	ctx, stop := context.WithCancel(t.Context())
	g.fuelBudget.stop = ctx
	ended := make(chan error)
	go func() {
		_, err := g.call(context.WithoutCancel(ctx), "f0", 1)
		ended <- err
	}()
	for range 3 {
		runtime.GC() // would wait forever
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// TestRewrite_Refusals: what cannot be metered is refused by name.
func TestRewrite_Refusals(t *testing.T) {
	reserved := func(import_ string, export string) []byte {
		out := []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00")
		if import_ != "" {
			out = append(out, 2, byte(len(import_)+6), 1, byte(len(import_)))
			out = append(append(out, import_...), 1, 'x', 0, 0)
			return out
		}
		out = append(out, 6, 6, 1, i64, 1, 0x42, 0, 0x0b, 7, byte(len(export)+4), 1, byte(len(export)))
		return append(append(out, export...), 3, 0)
	}
	for _, c := range []struct {
		name string
		wasm []byte
		want string
	}{
		{"exceptions", assemble([]byte{0x08, 0}), "instruction throw (0x08) in function 0"},
		{"function references", assemble([]byte{0x20, 0, 0x14, 0}), "call_ref (0x14)"},
		{"garbage collection", assemble([]byte{0xfb, 0}), "of garbage-collected types (0xfb 0x00)"},
		{"relaxed vectors", assemble([]byte{0xfd, 0x85, 2}), "f32x4.relaxed_madd (0xfd 0x105)"},
		{"not assigned", assemble([]byte{0x20, 0, 0xff}), "unknown instruction 0xff in function 0 at byte 0x"},
		{"vector not assigned", assemble([]byte{0xfd, 0x9a, 1}), "unknown instruction 0xfd 0x9a"},
		{"own module", reserved(meter.ImportModule, ""), "which is reserved for the host"},
		{"fuel export", reserved("", meter.FuelGlobal), "which is reserved for the host"},
		{"stack export", reserved("", meter.StackGlobal), "which is reserved for the host"},
		{"local", assemble([]byte{0x20, 2}), "local 2 does not exist"},
		{"global", assemble([]byte{0x23, 0}), "global 0 does not exist"},
		{"type", assemble([]byte{0x20, 0, 0x11, 1, 0}), "type 1 does not exist"},
		{"block type", assemble([]byte{0x02, 1, 0x0b}), "type 1 does not exist"},
		{"label", assemble([]byte{0x0c, 1}), "label 1 does not exist"},
		{"function", assemble([]byte{0x10, 1}), "function 1 does not exist"},
		{"not a module", []byte("hello"), "not a WebAssembly module"},
		{"empty", nil, "not a WebAssembly module"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := meter.Rewrite(c.wasm, meter.Config{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
	var unknown *meter.UnknownOpcodeError
	if _, err := meter.Rewrite(assemble(nil, []byte{0xfd, 0x85, 2}), meter.Config{}); !errors.As(err, &unknown) ||
		unknown.Prefix != 0xfd || unknown.Opcode != 0x105 || unknown.Func != 1 {
		t.Errorf("got %+v", unknown)
	}
}

// TestConfig_Refusals: an impossible stack is refused.
func TestConfig_Refusals(t *testing.T) {
	for _, c := range []meter.Config{{MaxStack: -1}, {MaxStack: 1 << 40}} {
		if _, err := meter.Rewrite(assemble(nil), c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
