// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmctl/wasmctl/host/meter"
)

// smithVersion is the oldest minor version of cargo that builds testdata/smith.
const smithVersion = 81

// TestRewrite_SmithModules compares modules of wasm-smith, which uses the complete language, like
// TestRewrite_RandomModules does with our own generator: the results and effects of each export,
// and the charge. METER_SMITH is the number of modules, by default 60, and 300 in make test-all. METER_SMITH_SEED is
// the first seed.
func TestRewrite_SmithModules(t *testing.T) {
	number := 60
	if os.Getenv("WASMCTL_TESTS") == "all" {
		number = 300
	}
	n, first := smithNumber(t, "METER_SMITH", number), smithNumber(t, "METER_SMITH_SEED", 0)
	smith, dir := buildSmith(t), t.TempDir()
	if smith == "" {
		return
	}
	if out, err := exec.CommandContext(t.Context(), smith, dir, strconv.Itoa(first), strconv.Itoa(n)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var c smithCount
	failed := 0
	for seed := first; seed < first+n; seed++ {
		same := t.Run(strconv.Itoa(seed), func(t *testing.T) {
			c.compare(t, read(t, filepath.Join(dir, fmt.Sprintf("%d.wasm", seed))), read(t, filepath.Join(dir, fmt.Sprintf("%d.counted.wasm", seed))))
		})
		if !same {
			failed++
		}
		if failed == 10 {
			t.Fatal("ten modules differ: no more are compared")
		}
	}
	t.Logf("%d modules from seed %d: %+v", n, first, c)
	if c.Ended < n || c.Exact < n/4 || c.Refused > n/20 {
		t.Errorf("%+v of %d modules: the generator makes too few that show something", c, n)
	}
}

func smithNumber(t *testing.T, name string, otherwise int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// buildSmith builds testdata/smith, and returns its path, or "" without a suitable cargo.
func buildSmith(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "cargo", "--version").Output()
	minor := 0
	if _, scan := fmt.Sscanf(string(out), "cargo 1.%d", &minor); err != nil || scan != nil || minor < smithVersion {
		t.Logf("SKIPPED: no cargo 1.%d or newer on PATH (%v %s): metering is not compared on modules of wasm-smith", smithVersion, err, out)
		return ""
	}
	target, err := filepath.Abs("../../bin/rust")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "cargo", "build", "--quiet", "--release", "--locked", "--target-dir", target)
	cmd.Dir = "testdata/smith"
	for _, source := range []string{"src/main.rs", "Cargo.lock"} {
		read(t, filepath.Join(cmd.Dir, source)) // so that go test knows that its cached result depends on it
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("testdata/smith: %v\n%s", err, out)
	}
	return filepath.Join(target, "release", "smith")
}

// smithCount has the figures of a comparison.
type smithCount struct {
	Ended, Trapped int // calls
	Exact          int // calls whose charge is the sum that the model counts
	Deep           int // calls that the limit of the stack ended
	NotStarted     int // modules that trap when they start
	Refused        int // modules that wazero does not take
}

// compare runs each exported function of a module, of the same metered with and
// without slack, and of the model, each time on fresh instances.
func (c *smithCount) compare(t *testing.T, wasm, counted []byte) {
	plain := newSmith(t, wasm, nil)
	metered, exact := newSmith(t, wasm, &meter.Config{}), newSmith(t, wasm, &meter.Config{Exact: true})
	if plain == nil || metered == nil || exact == nil {
		if plain != metered || plain != exact {
			t.Fatalf("wazero takes it: plain %v, metered %v, exact %v", plain != nil, metered != nil, exact != nil)
		}
		c.Refused++
		return
	}
	model := newSmith(t, counted, nil)
	for name := range plain.compiled.ExportedFunctions() {
		a, b, e, m := plain.run(t, name), metered.run(t, name), exact.run(t, name), model.run(t, name)
		if b.deep || e.deep {
			c.Deep++
			continue
		}
		for _, other := range []smithSeen{b, e, m} {
			if !bytes.Equal(a.Memory, other.Memory) {
				t.Fatalf("%s: memory differs", name)
			}
			if diff := cmp.Diff(a, other, cmpopts.IgnoreUnexported(smithSeen{}), cmpopts.IgnoreFields(smithSeen{}, "Memory")); diff != "" {
				t.Fatalf("%s: plain -, other +:\n%s", name, diff)
			}
		}
		if !a.Started {
			c.NotStarted++
			return
		}
		c.charge(t, name, a, e, m)
	}
}

// charge compares the charge of a call without slack with the model.
func (c *smithCount) charge(t *testing.T, name string, plain, exact, model smithSeen) {
	t.Helper()
	switch {
	case exact.fuel < model.count:
		t.Fatalf("%s: charged %d, the model counts %d", name, exact.fuel, model.count)
	case plain.Err != "":
		c.Trapped++
		return
	case model.exact && exact.fuel != model.count:
		t.Fatalf("%s: charged %d without slack, the model counts %d", name, exact.fuel, model.count)
	case model.exact:
		c.Exact++
	}
	c.Ended++
}

// smith is a module that is compiled, metered or not.
type smith struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	maxStack int64 // 0 if not metered
	budget   *fuelBudget
}

// newSmith compiles a module, or returns nil where wazero does not take it.
func newSmith(t *testing.T, wasm []byte, mc *meter.Config) *smith {
	t.Helper()
	s := &smith{runtime: wazero.NewRuntimeWithConfig(t.Context(), fuzzConfig()), budget: &fuelBudget{}}
	closeAfter(t, s.runtime)
	if mc != nil {
		out := rewrite(t, wasm, *mc)
		wasm, s.maxStack = out.Wasm, out.MaxStack
		s.budget.link(t, s.runtime)
	}
	linkSmith(t, s.runtime)
	var err error
	if s.compiled, err = s.runtime.CompileModule(t.Context(), wasm); err != nil {
		t.Logf("wazero: %v", err)
		return nil
	}
	return s
}

// linkSmith provides the imports of the program's functions.
func linkSmith(t *testing.T, r wazero.Runtime) {
	t.Helper()
	n32, n64, f64 := []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI64}, []api.ValueType{api.ValueTypeI64, api.ValueTypeF64}
	host := r.NewHostModuleBuilder("env")
	for i, f := range []struct{ params, results []api.ValueType }{{}, {n32, n32}, {f64, nil}, {nil, n64}} {
		host.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
			switch i {
			case 1:
				stack[0] = uint64(uint32(stack[0]) * 3)
			case 3:
				stack[0] = 1 << 40
			}
		}), f.params, f.results).Export(fmt.Sprintf("f%d", i))
	}
	if _, err := host.Instantiate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// smithSeen is the observable result of a call.
type smithSeen struct {
	Started bool
	Results []uint64
	Err     string
	Globals map[string]uint64
	Memory  []byte

	deep        bool // the limit of the stack ended it
	fuel, count int64
	exact       bool
}

// run calls an export of a fresh instance.
func (s *smith) run(t *testing.T, name string) (seen smithSeen) {
	t.Helper()
	*s.budget = fuelBudget{maxStack: s.maxStack}
	mod, err := s.runtime.InstantiateModule(t.Context(), s.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		seen.Err, seen.deep = reason(err), errors.Is(err, errStack)
		return seen
	}
	defer func() { _ = mod.Close(t.Context()) }()
	g := &guest{Module: mod}
	if s.maxStack > 0 {
		g.fuelBudget = s.budget
		s.budget.bind(mod)
	}
	f := mod.ExportedFunction(name)
	results, err := g.call(t.Context(), name, smithArguments(f.Definition())...)
	if err != nil {
		seen.Err, seen.deep = reason(err), errors.Is(err, errStack)
	}
	seen.Started, seen.Results, seen.Globals = true, withoutReferences(f.Definition(), results), map[string]uint64{}
	if g.fuelBudget != nil {
		seen.fuel = s.budget.spent()
	}
	if m := memory(mod); m != nil {
		seen.Memory = slices.Clone(m)
	}
	s.globals(mod, &seen)
	return seen
}

// globals reads those that the module exports, and those of the model.
func (s *smith) globals(mod api.Module, seen *smithSeen) {
	for i := range 1000 { // each is exported by its number among all exports
		name := strconv.Itoa(i)
		if g := mod.ExportedGlobal(name); g != nil && g.Type() != api.ValueTypeExternref && g.Type() != 0x70 {
			seen.Globals[name] = g.Get()
		}
	}
	if g := mod.ExportedGlobal("count"); g != nil {
		seen.count = int64(g.Get())
		seen.exact = mod.ExportedGlobal("exact").Get() == 1
	}
}

// smithArguments are some for a function's parameters; a reference is null.
func smithArguments(def api.FunctionDefinition) (args []uint64) {
	for i, t := range def.ParamTypes() {
		switch t {
		case api.ValueTypeI32, api.ValueTypeI64:
			args = append(args, uint64(i*7))
		case api.ValueTypeF32:
			args = append(args, api.EncodeF32(float32(i)-0.5))
		case api.ValueTypeF64:
			args = append(args, api.EncodeF64(float64(i)-0.5))
		case 0x7b:
			args = append(args, uint64(i), 1<<40)
		default:
			args = append(args, 0)
		}
	}
	return args
}

// withoutReferences leaves out results that are addresses in this process.
func withoutReferences(def api.FunctionDefinition, results []uint64) (out []uint64) {
	for _, t := range def.ResultTypes() {
		n := 1
		if t == 0x7b {
			n = 2
		}
		if len(results) < n {
			return out
		}
		if t != api.ValueTypeExternref && t != 0x70 {
			out = append(out, results[:n]...)
		}
		results = results[n:]
	}
	return out
}

// reason returns the cause of a trap without the numbers of functions: a metered module has one
// more import.
func reason(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if _, after, ok := strings.Cut(line, "] failed: "); ok {
		return after
	}
	return line
}
