// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"testing"
)

// version is the version of wazero whose layout this package assumes. Whoever changes it
// must compare docs/wazero-internals.md with the source of the new version.
const version = "v1.12.0"

func TestWazero_HasTheAssumedVersion(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`github.com/tetratelabs/wazero (\S+)`).FindSubmatch(mod)
	if m == nil || string(m[1]) != version {
		t.Errorf("go.mod requires wazero %s, and package layout assumes %s: compare docs/wazero-internals.md with the new source, and change the version here", m[1], version)
	}
}

// TestWazero_HasTheAssumedFields compares each field on the way from a compiled module to
// its code with the type that is assumed. The types of the last ones must be exact: Install
// writes to them.
func TestWazero_HasTheAssumedFields(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("SKIPPED: wazero compiles for amd64 and arm64")
	}
	_, module := compiled(t, 10)
	at := pointed(reflect.ValueOf(module))
	for _, step := range []struct{ field, of, typ string }{
		{"module", "wazero.compiledModule", "*wasm.Module"},
		{"compiledEngine", "wazero.compiledModule", "wasm.Engine"},
	} {
		wantField(t, at, step.field, step.of, step.typ)
	}
	wantField(t, pointed(field(at, "module")), "ID", "wasm.Module", "[32]uint8")
	engine := pointed(field(at, "compiledEngine"))
	wantField(t, engine, "compiledModules", "wazevo.engine", "map[[32]uint8]*wazevo.compiledModuleWithCount")
	counted := pointed(field(engine, "compiledModules").MapIndex(field(pointed(field(at, "module")), "ID")))
	wantField(t, counted, "compiledModule", "wazevo.compiledModuleWithCount", "*wazevo.compiledModule")
	code := pointed(field(counted, "compiledModule"))
	wantField(t, code, "executables", "wazevo.compiledModule", "*wazevo.executables")
	wantField(t, code, "sourceMap", "wazevo.compiledModule", "wazevo.sourceMap")
	wantField(t, pointed(field(code, "executables")), "executable", "wazevo.executables", "[]uint8")
	wantField(t, field(code, "sourceMap"), "executableOffsets", "wazevo.sourceMap", "[]uintptr")
	if !Known() {
		t.Error("the fields are unknown")
	}
}

func wantField(t *testing.T, v reflect.Value, name, of, typ string) {
	t.Helper()
	if got := v.Type().String(); got != of {
		t.Fatalf("the struct with %s is a %s, want %s", name, got, of)
	}
	f := field(v, name)
	if !f.IsValid() {
		t.Fatalf("%s has no field %s", of, name)
	}
	if got := f.Type().String(); got != typ {
		t.Errorf("%s.%s is a %s, want %s", of, name, got, typ)
	}
}

// TestDisable_LeavesEverythingToWazero: without the assumptions, no file is divided, no code
// is installed, and no generator is found.
func TestDisable_LeavesEverythingToWazero(t *testing.T) {
	defer Disable()()
	if Known() {
		t.Error("the fields are known")
	}
	if _, err := Find(nil, &Given{}); err == nil {
		t.Error("generators are looked for")
	}
	_, module := compiled(t, 2)
	if err := Install(module, bytes.Repeat([]byte{trap}, stubSize)); err == nil {
		t.Error("code was installed")
	}
}
