// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// large is the empty guest with so much beside it that a Compiler is asked.
func large(n int) []byte {
	const size = 8 << 10 // of the name of function 0
	names := append(binary.AppendU32([]byte{1, 0}, size), bytes.Repeat([]byte("x"), size)...)
	return variant(withSection(wasm.Empty, "name", binary.AppendSection(nil, binary.NamesOfFunctions, names)), n)
}

// runIt compiles in this process, where a Compiler would start another.
func runIt(ctx context.Context, job load.Compilation) error { return job.Run(ctx) }

// A module whose code is being made has a number already, and is gone from the
// list where that fails.
func TestRevisions_ShowWhatIsBeingCompiled(t *testing.T) {
	inThisProcess(t)
	var m *Module
	var during []string
	broken := errors.New("no process")
	refuse := false
	m = loaded(t, wasm.Empty, Config{Code: load.Options{Compiler: func(ctx context.Context, job load.Compilation) error {
		if m != nil { // else it is the first one
			during = states(m)
		}
		if refuse {
			return &load.InvalidError{Name: "x", Problems: []string{broken.Error()}}
		}
		return job.Run(ctx)
	}}})
	swap(t, m, large(1))
	if diff := cmp.Diff([]string{"1 live", "2 loading"}, during); diff != "" {
		t.Errorf("while it is compiled: %s", diff)
	}
	refuse = true
	if _, err := m.Prepare(t.Context(), large(2), nil); !errors.Is(err, load.ErrInvalidModule) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"1 kept", "2 live"}, states(m)); diff != "" {
		t.Errorf("afterwards: %s", diff)
	}
}

// What a Compiler says against the module counts; that it does not start, or
// leaves nothing, does not: the module is compiled here.
func TestLoad_ACompilerThatFailsIsNoFaultOfTheModule(t *testing.T) {
	inThisProcess(t)
	for name, c := range map[string]struct {
		compiler func(context.Context, load.Compilation) error
		log      string
	}{
		"works":       {runIt, ""},
		"no process":  {func(context.Context, load.Compilation) error { return errors.New("fork: no memory") }, "cannot start the compiler process"},
		"does naught": {func(context.Context, load.Compilation) error { return nil }, "cannot use the compilation cache"},
		"no disk":     {func(context.Context, load.Compilation) error { return load.ErrCacheDir }, "cannot use the compilation cache"},
	} {
		for _, dir := range []string{"", t.TempDir()} {
			var log bytes.Buffer
			m := loaded(t, large(1), Config{Code: load.Options{CacheDir: dir, Compiler: c.compiler}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if g := acquire(t, m); g == nil {
				t.Fatal("no guest")
			}
			if got := log.String(); c.log == "" && got != "" || !strings.Contains(got, c.log) {
				t.Errorf("%s: log %q, want %q", name, got, c.log)
			}
		}
	}
	_, err := Load(t.Context(), large(1), Config{Code: load.Options{Compiler: func(context.Context, load.Compilation) error {
		return &load.InvalidError{Problems: []string{"takes too long"}}
	}}})
	if !errors.Is(err, load.ErrInvalidModule) || !strings.Contains(err.Error(), "takes too long") {
		t.Errorf("got %v", err)
	}
}

// With a module that is no module, no Compiler is asked, and the error is that of
// a host without one.
func TestLoad_NoCompilerIsAskedAboutAnInvalidModule(t *testing.T) {
	bad := append(large(1), 0x0b, 0x02, 0x01, 0xff) // a data section that ends too soon
	asked := false
	_, plain := Load(t.Context(), bad, Config{})
	_, err := Load(t.Context(), bad, Config{Code: load.Options{Compiler: func(context.Context, load.Compilation) error { asked = true; return nil }}})
	if plain == nil || err == nil || err.Error() != plain.Error() || asked {
		t.Errorf("got %v, want %v; asked: %v", err, plain, asked)
	}
}

// withFunctions is a module with so many more functions, each of so many locals
// in a few bytes.
func withFunctions(t *testing.T, functions, locals int) []byte {
	t.Helper()
	body := append(binary.AppendU32([]byte{1}, uint32(locals)), 0x7f, 0x0b) //nolint:gosec // small
	one := append(binary.AppendU32(nil, uint32(len(body))), body...)        //nolint:gosec // small
	sections, err := binary.Sections(wasm.Empty)
	if err != nil {
		t.Fatal(err)
	}
	out := []byte(binary.Header)
	for _, s := range sections {
		added := map[byte][]byte{binary.SectionFunction: binary.AppendU32(nil, 0), binary.SectionCode: one}[s.ID]
		if added == nil {
			out = append(out, wasm.Empty[s.Start:s.End]...)
			continue
		}
		r := s.Body
		n := r.U32()
		payload := append(binary.AppendU32(nil, n+uint32(functions)), r.Rest()...) //nolint:gosec // small
		out = binary.AppendSection(out, s.ID, append(payload, bytes.Repeat(added, functions)...))
	}
	return out
}

// Few bytes that are much work are not compiled in this process, and more locals
// than any program has are refused.
func TestLoad_WorkOfCompilingIsBounded(t *testing.T) {
	for _, tc := range []struct {
		functions, locals int
		asked             bool
		problem           string
	}{
		{1, 100, false, ""},
		{60, 50_000, true, ""},
		{850, 50_000, false, "functions have more than 4000000 locals together"},
	} {
		module := withFunctions(t, tc.functions, tc.locals)
		asked := false
		cfg := Config{Code: load.Options{Compiler: func(ctx context.Context, job load.Compilation) error {
			asked = true
			return job.Run(ctx)
		}}}
		m, err := Load(t.Context(), module, cfg)
		if err == nil {
			err = m.Close(t.Context())
		}
		if asked != tc.asked && defaultIsolation == nil || (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
			t.Errorf("%d functions of %d locals, %d bytes: asked %v, error %v", tc.functions, tc.locals, len(module), asked, err)
		}
	}
}

// A manifest that is refused costs no compiling, where it is in the bytes; one that
// is not is asked about once.
func TestPrepare_RefusesTheManifestBeforeCompiling(t *testing.T) {
	compiled, asked := 0, 0
	m := loaded(t, wasm.Empty, Config{Code: load.Options{CacheDir: t.TempDir(), Compiler: func(ctx context.Context, job load.Compilation) error {
		compiled++
		return job.Run(ctx)
	}}})
	compiled = 0 // the first one too, where nobody has read its code
	manifest, err := abi.EncodeManifest(&abi.Manifest{Version: "2"})
	if err != nil {
		t.Fatal(err)
	}
	named := withSection(large(1), abi.ManifestSection, manifest)
	refusal := errors.New("no")
	if _, err := m.Prepare(t.Context(), named, func(string, *abi.Manifest) (operation.API, error) { return nil, refusal }); !errors.Is(err, refusal) || compiled > 0 {
		t.Errorf("compiled %d times, error %v", compiled, err)
	}
	wantStates(t, m, "1 live")
	c, err := m.Prepare(t.Context(), named, func(_ string, man *abi.Manifest) (operation.API, error) {
		asked++
		if man.Version != "2" {
			t.Errorf("manifest %+v", man)
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Discard()
	if asked != 1 || compiled != 1 {
		t.Errorf("asked %d times, compiled %d times", asked, compiled)
	}
}
