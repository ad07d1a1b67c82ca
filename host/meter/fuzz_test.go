// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmctl/wasmctl/host/meter"
)

const genFeatures = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall

// seen is the observable result of a generated module's run.
type seen struct {
	Results []uint64
	Err     string
	State   uint64
	Memory  []byte
	count   int64 // of the model
	fuel    int64
}

// runGenerated runs the export of a generated module.
func runGenerated(t *testing.T, wasm []byte, mc *meter.Config) seen {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCoreFeatures(genFeatures))
	defer closeRuntime(t, r)
	g := &guest{}
	if mc != nil {
		out := rewrite(t, wasm, *mc)
		g.fuelBudget = &fuelBudget{maxStack: out.MaxStack}
		g.fuelBudget.link(t, r)
		wasm = out.Wasm
	}
	mod, err := r.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig())
	if err != nil {
		t.Fatalf("metered %v: %v", mc != nil, err)
	}
	g.Module = mod
	if g.fuelBudget != nil {
		g.fuelBudget.bind(mod)
	}
	var s seen
	s.Results, err = g.call(t.Context(), "run")
	if err != nil {
		s.Err = err.Error()
	}
	s.State = mod.ExportedGlobal("state").Get()
	s.count = int64(mod.ExportedGlobal("count").Get())
	s.Memory = append([]byte(nil), memory(mod)...)
	if g.fuelBudget != nil {
		s.fuel = g.fuelBudget.spent()
	}
	return s
}

// checkGenerated checks that a generated module behaves the same with and without metering. Without
// slack, its charge is exact, compared with a model that counts before each instruction. It reports
// whether the module ended without a trap.
func checkGenerated(t *testing.T, src []byte) bool {
	t.Helper()
	wasm := (&generator{src: src}).module()
	plain := runGenerated(t, wasm, nil)
	metered := runGenerated(t, wasm, &meter.Config{})
	exact := runGenerated(t, wasm, &meter.Config{Exact: true})
	for _, other := range []seen{metered, exact} {
		if !bytes.Equal(plain.Memory, other.Memory) {
			t.Fatal("memory differs")
		}
		if diff := cmp.Diff(plain, other, cmpopts.IgnoreUnexported(seen{}), cmpopts.IgnoreFields(seen{}, "Memory")); diff != "" {
			t.Fatalf("plain -, metered +:\n%s", diff)
		}
	}
	if again := runGenerated(t, wasm, &meter.Config{}); again.fuel != metered.fuel {
		t.Fatalf("fuel is %d, then %d", metered.fuel, again.fuel)
	}
	model := runGenerated(t, (&generator{src: src, counting: true}).module(), nil)
	if model.Err != plain.Err || !bytes.Equal(model.Memory, plain.Memory) {
		t.Fatalf("the model does something else: %q, not %q", model.Err, plain.Err)
	}
	switch {
	case plain.Err == "" && exact.fuel != model.count:
		t.Fatalf("charged %d without slack, the model counts %d", exact.fuel, model.count)
	case plain.Err != "" && exact.fuel < model.count:
		t.Fatalf("charged %d without slack before a trap, the model counts %d", exact.fuel, model.count)
	}
	return plain.Err == ""
}

// TestRewrite_RandomModules runs generated modules side by side. With
// METER_RANDOM_TIME, a duration, it goes on that long, with other modules each
// time.
func TestRewrite_RandomModules(t *testing.T) {
	n, seed, until := 200, uint64(1), time.Time{}
	if testing.Short() {
		n = 40
	}
	if v := os.Getenv("METER_RANDOM_TIME"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatal(err)
		}
		until, seed = time.Now().Add(d), rand.Uint64()
	}
	rnd := rand.New(rand.NewPCG(seed, 2))
	var ended, trapped int
	for i := 0; i < n || time.Now().Before(until); i++ {
		src := make([]byte, 200+rnd.IntN(2000))
		for i := range src {
			src[i] = byte(rnd.Uint32())
		}
		if checkGenerated(t, src) {
			ended++
		} else {
			trapped++
		}
	}
	t.Logf("seed %d: %d modules ended, %d trapped", seed, ended, trapped)
	if ended < n/10 || trapped < n/50 {
		t.Errorf("%d modules ended, %d trapped: the generator makes too few of one kind", ended, trapped)
	}
}

// FuzzGenerated looks for a generated module that metering changes. Such inputs
// are slow to make smaller: run it with -fuzzminimizetime=1x.
func FuzzGenerated(f *testing.F) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		src := make([]byte, 1500)
		for i := range src {
			src[i] = byte(rnd.Uint32())
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) { checkGenerated(t, src) })
}

// FuzzRewrite: no bytes make Rewrite panic; a module that wazero takes is
// refused with a reason or gives a module that wazero takes, whose exported
// functions without parameters do the same.
func FuzzRewrite(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "testdata", "wasm", "*.wasm"))
	dir := filepath.Join(wazeroDir(f), "spectest")
	for _, pattern := range []string{"v2/testdata/*.1.wasm", "tail-call/testdata/*.wasm", "v2/testdata/start.*.wasm", "v2/testdata/elem.*.wasm"} {
		more, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			f.Fatal(err)
		}
		files = append(files, more...)
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && len(b) < 8<<10 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		out, err := meter.Rewrite(wasm, meter.Config{})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "meter: ") {
				t.Fatalf("refused without a reason: %v", err)
			}
			return
		}
		// What Rewrite takes has no counts that the bytes do not back, so
		// wazero does not allocate by them.
		perr, merr := compile(t, wasm), compile(t, out.Wasm)
		if perr != nil && strings.Contains(perr.Error(), "custom section") {
			return // wazero refuses an empty one that is the last; it is valid
		}
		if (perr == nil) != (merr == nil) {
			t.Fatalf("wazero says %v of the module and %v of the metered one", perr, merr)
		}
		if perr == nil && !bigTables(wasm) {
			compareExports(t, wasm)
		}
	})
}

func fuzzConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().WithCoreFeatures(genFeatures).WithMemoryLimitPages(64)
}

func compile(t *testing.T, wasm []byte) error {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(t.Context(), fuzzConfig())
	defer closeRuntime(t, r)
	_, err := r.CompileModule(t.Context(), wasm)
	return err
}

// bigTables reports whether a module has a table section that is larger than usual, because wazero
// allocates its declared size.
func bigTables(wasm []byte) bool {
	for p := 8; p+1 < len(wasm); {
		id := wasm[p]
		size, n := binary.Uvarint(wasm[p+1:])
		if id == 4 {
			return size > 6 || bytes.ContainsFunc(wasm[p+1+n:p+1+n+int(size)], func(r rune) bool { return r == utf8.RuneError })
		}
		p += 1 + n + int(size)
	}
	return false
}

// compareExports runs the exports without parameters of two modules, and compares them.
func compareExports(t *testing.T, wasm []byte) {
	t.Helper()
	// What runs without end is stopped: unmetered by the clock, metered by its
	// budget. Nothing can be compared then.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	pr := wazero.NewRuntimeWithConfig(ctx, fuzzConfig().WithCloseOnContextDone(true))
	defer closeRuntime(t, pr)
	plain, perr := pr.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	mr := wazero.NewRuntimeWithConfig(t.Context(), fuzzConfig())
	defer closeRuntime(t, mr)
	out := rewrite(t, wasm, meter.Config{})
	k := &fuelBudget{maxStack: out.MaxStack, budget: 20 * slice}
	k.link(t, mr)
	metered, merr := mr.InstantiateWithConfig(t.Context(), out.Wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if ctx.Err() != nil || errors.Is(merr, errBudget) || errors.Is(merr, errStack) {
		return
	}
	if (perr == nil) != (merr == nil) {
		t.Fatalf("instantiate: plain %v, metered %v", perr, merr)
	}
	if perr != nil {
		return
	}
	k.bind(metered)
	for name, def := range plain.ExportedFunctionDefinitions() {
		if len(def.ParamTypes()) > 0 || slices.ContainsFunc(def.ResultTypes(), func(v api.ValueType) bool { return v == 0x70 }) {
			continue
		}
		a, aerr := plain.ExportedFunction(name).Call(ctx)
		b, berr := (&guest{Module: metered, fuelBudget: k}).call(t.Context(), name)
		if ctx.Err() != nil || errors.Is(berr, errBudget) || errors.Is(berr, errStack) {
			return
		}
		if fmt.Sprint(a, aerr) != fmt.Sprint(b, berr) || !bytes.Equal(memory(plain), memory(metered)) {
			t.Fatalf("%s: plain %v %v, metered %v %v", name, a, aerr, b, berr)
		}
	}
}
