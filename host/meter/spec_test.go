// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmctl/wasmctl/host/meter"
)

// specSuite is one folder of wazero's copy of the WebAssembly test suite.
type specSuite struct {
	dir      string
	features api.CoreFeatures
	flags    []string // of wasm-validate
}

// Left out are wazero's exception-handling and typed-function-references,
// which the host does not enable and Rewrite refuses.
var specSuites = []specSuite{
	{"v1", api.CoreFeaturesV1, nil},
	{"v2", api.CoreFeaturesV2, nil},
	{"tail-call", api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall, []string{"--enable-tail-call"}},
	{"threads", api.CoreFeaturesV2 | experimental.CoreFeaturesThreads, []string{"--enable-threads"}},
	{"extended-const", api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst, []string{"--enable-extended-const"}},
}

// wazeroDir returns the folder of wazero's source, or skips the test.
func wazeroDir(tb testing.TB) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	dir := filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test")
	if _, serr := os.Stat(dir); err != nil || serr != nil {
		tb.Skipf("SKIPPED: the source of wazero, which holds the WebAssembly test suite, is not in the module cache: %v %v", err, serr)
	}
	return dir
}

// TestRewrite_SpecSuite: a metered module has the same results, traps, stack traces and memory as
// the original, for each module and each command of the WebAssembly test suite, and an invalid
// module stays invalid.
func TestRewrite_SpecSuite(t *testing.T) {
	root := filepath.Join(wazeroDir(t), "spectest")
	spectest := read(t, filepath.Join(root, "testdata", "spectest.wasm"))
	for _, s := range specSuites {
		t.Run(s.dir, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(root, s.dir, "testdata", "*.json"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no test files: %v", err)
			}
			done := map[string]int{}
			for _, f := range files {
				t.Run(filepath.Base(f), func(t *testing.T) { runSpec(t, s, spectest, f, done) })
			}
			t.Logf("commands run side by side: %v", done)
		})
	}
}

type specCommand struct {
	Type, Name, Filename, As, Text string
	Line                           int
	ModuleType                     string `json:"module_type"`
	Action                         struct {
		Type, Field, Module string
		Args                []specValue
	}
}

type specValue struct {
	Type     string
	LaneType string `json:"lane_type"`
	Value    any
}

// uint64s encodes an argument as wazero takes it.
func (v specValue) uint64s(t *testing.T) []uint64 {
	t.Helper()
	parse := func(s string, bits int) uint64 {
		n, err := strconv.ParseUint(s, 10, bits)
		if err != nil {
			i, ierr := strconv.ParseInt(s, 10, bits)
			if ierr != nil {
				t.Fatal(err)
			}
			n = uint64(i) & (1<<bits - 1)
		}
		return n
	}
	switch s := v.Value.(type) {
	case string:
		switch {
		case s == "null":
			return []uint64{0}
		case v.Type == "externref":
			return []uint64{parse(s, 64) + 1} // 0 is null
		}
		return []uint64{parse(s, 64)}
	case []any:
		width := 128 / len(s)
		var out [2]uint64
		for i, lane := range s {
			out[i*width/64] |= parse(lane.(string), width) << (i * width % 64)
		}
		return out[:]
	}
	t.Fatalf("argument %v", v)
	return nil
}

// world is one of the two sides: a runtime and its modules.
type world struct {
	r       wazero.Runtime
	metered bool
	modules map[string]api.Module
	last    api.Module
}

func newWorld(t *testing.T, s specSuite, metered bool) *world {
	t.Helper()
	w := &world{metered: metered, modules: map[string]api.Module{}}
	w.r = wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCoreFeatures(s.features))
	closeAfter(t, w.r)
	// Any module of this world may run out, so the counter is found each time.
	refill := func(_ context.Context, mod api.Module, _ []uint64) {
		var k fuelBudget
		k.bind(mod)
		if int64(k.stack.Get()) < 0 {
			panic(errStack)
		}
		k.fuel.Set(slice)
	}
	_, err := w.r.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refill), nil, nil).Export(meter.RefillFunc).Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// load meters a module if need be and instantiates it.
func (w *world) load(t *testing.T, wasm []byte, name string) (api.Module, error) {
	if w.metered {
		out, err := meter.Rewrite(wasm, meter.Config{})
		if err != nil {
			return nil, err
		}
		wasm = out.Wasm
	}
	return w.r.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig().WithName(name))
}

// resetStacks does the host's work before a call.
func (w *world) resetStacks() {
	for _, m := range append([]api.Module{w.last}, values(w.modules)...) {
		if m == nil {
			continue
		}
		if g, ok := m.ExportedGlobal(meter.StackGlobal).(api.MutableGlobal); ok {
			g.Set(meter.DefaultMaxStack)
		}
	}
}

func values[K comparable, V any](m map[K]V) []V {
	var out []V
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// outcome is what can be seen of a command.
type outcome struct {
	Results []uint64
	Err     string
	Memory  []byte
}

// act runs the action of a command.
func (w *world) act(t *testing.T, c *specCommand) outcome {
	m := w.last
	if c.Action.Module != "" {
		m = w.modules[c.Action.Module]
	}
	var o outcome
	if c.Action.Type == "get" {
		return outcome{Results: []uint64{m.ExportedGlobal(c.Action.Field).Get()}}
	}
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, a.uint64s(t)...)
	}
	w.resetStacks()
	fn := m.ExportedFunction(c.Action.Field)
	res, err := fn.Call(t.Context(), args...)
	i := 0
	for _, rt := range fn.Definition().ResultTypes() {
		if err == nil && rt == 0x70 && res[i] != 0 { // a function reference is a pointer
			res[i] = 1
		}
		if i++; rt == 0x7b {
			i++
		}
	}
	o.Results = res
	if err != nil {
		o.Err = err.Error()
	}
	o.Memory = memory(m)
	return o
}

// memory returns the complete memory of a module, or nil without one.
func memory(m api.Module) []byte {
	mem := m.Memory()
	if mem == nil || reflect.ValueOf(mem).IsNil() { // wazero's nil has a type
		return nil
	}
	b, _ := mem.Read(0, mem.Size())
	return b
}

// runSpec runs a file of commands in both worlds.
func runSpec(t *testing.T, s specSuite, spectest []byte, file string, done map[string]int) {
	var script struct{ Commands []specCommand }
	if err := json.Unmarshal(read(t, file), &script); err != nil {
		t.Fatal(err)
	}
	plain, metered := newWorld(t, s, false), newWorld(t, s, true)
	for _, w := range []*world{plain, metered} {
		if _, err := w.load(t, spectest, "spectest"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range script.Commands {
		c := &script.Commands[i]
		if c.ModuleType == "text" || strings.HasSuffix(c.Filename, ".wat") {
			continue // both worlds read the binary format only
		}
		done[c.Type]++
		if c.Filename != "" {
			wasm := read(t, filepath.Join(filepath.Dir(file), c.Filename))
			var as string
			if next := i + 1; next < len(script.Commands) && script.Commands[next].Type == "register" {
				as = script.Commands[next].As
			}
			instantiate(t, s, c, wasm, as, plain, metered)
			continue
		}
		if c.Type == "register" {
			continue // with the module before it
		}
		a, b := plain.act(t, c), metered.act(t, c)
		if c.Type == "assert_exhaustion" {
			if a.Err == "" || b.Err == "" {
				t.Errorf("line %d: recursion without end: plain %q, metered %q", c.Line, a.Err, b.Err)
			}
			continue
		}
		if (a.Err != "") != (c.Type == "assert_trap") {
			t.Fatalf("line %d: %s: %s", c.Line, c.Type, a.Err)
		}
		if !bytes.Equal(a.Memory, b.Memory) {
			t.Errorf("line %d: memory differs", c.Line)
		}
		a.Memory, b.Memory = nil, nil
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("line %d: %s (plain -, metered +):\n%s", c.Line, c.Action.Field, diff)
		}
	}
}

// startFunction is how wazero names a start function: by its index, which is
// one more in a metered module.
var startFunction = regexp.MustCompile(`start function\[\d+\]`)

// instantiate loads a module in both worlds.
func instantiate(t *testing.T, s specSuite, c *specCommand, wasm []byte, as string, plain, metered *world) {
	a, aerr := plain.load(t, wasm, as)
	b, berr := metered.load(t, wasm, as)
	if (aerr == nil) != (berr == nil) {
		t.Fatalf("line %d: %s: plain %v, metered %v", c.Line, c.Type, aerr, berr)
	}
	if c.Type == "assert_uninstantiable" && aerr != nil {
		a, b := startFunction.ReplaceAllString(aerr.Error(), ""), startFunction.ReplaceAllString(berr.Error(), "")
		if a != b {
			t.Errorf("line %d: plain %v, metered %v", c.Line, aerr, berr)
		}
	}
	if c.Type != "module" {
		return
	}
	if aerr != nil {
		t.Fatalf("line %d: %v", c.Line, aerr)
	}
	validate(t, wasm, s.flags)
	plain.last, metered.last = a, b
	if c.Name != "" {
		plain.modules[c.Name], metered.modules[c.Name] = a, b
	}
}

// validate holds a metered module against wabt, if wabt takes the module that
// it was made from.
func validate(t *testing.T, wasm []byte, flags []string) {
	t.Helper()
	out, err := meter.Rewrite(wasm, meter.Config{})
	if err != nil {
		return
	}
	tool, err := exec.LookPath("wasm-validate")
	if err != nil {
		t.Log("SKIPPED: wasm-validate (Debian package wabt) is not installed: outputs are not held against it")
		return
	}
	if msg := wabt(t, tool, out.Wasm, flags); msg != "" && wabt(t, tool, wasm, flags) == "" {
		t.Errorf("wasm-validate: %s", msg)
	}
}

func wabt(t *testing.T, tool string, wasm []byte, flags []string) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "m.wasm")
	if err := os.WriteFile(f, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	msg, err := exec.CommandContext(t.Context(), tool, append(flags, f)...).CombinedOutput()
	if err != nil {
		return string(msg) + err.Error()
	}
	return ""
}
