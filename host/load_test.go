// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// withManifest is a module with a manifest that may be invalid.
func withManifest(tb testing.TB, module []byte, m *abi.Manifest) []byte {
	tb.Helper()
	out, err := load.WithManifest(module, m)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// withSection is a module with one more custom section.
func withSection(module []byte, name string, payload []byte) []byte {
	p := append([]byte{byte(len(name))}, name...)
	return binary.AppendSection(bytes.Clone(module), binary.SectionCustom, append(p, payload...))
}

type badModule struct {
	name string
	wasm []byte
	want string
}

// badModules are modules whose bytes show that they cannot be loaded.
func badModules(tb testing.TB) []badModule {
	text := "module[m]: "
	return []badModule{
		{"empty", nil, text + "is empty"},
		{"text format", []byte("(module)"), text + `is not WebAssembly: the first bytes are not \0asm (is it the .wasm file, and not source, text format or an archive?)`},
		{"only the magic", []byte("\x00asm\x01"), text + "ends too early: the file is truncated or damaged"},
		{
			"component", []byte("\x00asm\x0d\x00\x01\x00"),
			text + "is a component; wasmctl takes core modules: build for wasm32-wasip1 or wasm32-unknown-unknown without componentizing it",
		},
		{"version 2", []byte("\x00asm\x02\x00\x00\x00"), text + "is WebAssembly of version 2; wasmctl takes version 1"},
		{"truncated", wasm.Modes[:len(wasm.Modes)/2], text + "section code at byte 126: ends too early: the file is truncated or damaged"},
		{"unknown section", append(bytes.Clone(wasm.Empty), 99, 0), text + "section id 99 at byte 143 is unknown"},
		{"no exports", []byte("\x00asm\x01\x00\x00\x00"), text + `4 problems:
  - export[reconciler_abi_1]: missing: not a reconciler module, or built without an SDK
  - export[memory]: missing, expected a memory
  - export[buffer]: missing, expected (i32) -> (i32)
  - export[reconcile]: missing, expected (i32, i32) -> (i64)`},
		{"bad exports", wasm.BadExports, text + `5 problems:
  - export[reconciler_abi_1]: missing: not a reconciler module, or built without an SDK
  - export[buffer]: missing, expected (i32) -> (i32)
  - export[reconcile]: found (i32) -> (i64), expected (i32, i32) -> (i64)
  - export[map]: found a global, expected (i32, i32) -> (i64)
  - export[filter]: found (i32, i32) -> (), expected (i32, i32) -> (i32)`},
		{"bad imports", wasm.BadImports, text + `7 problems:
  - import[reconciler_v1.teleport]: this host does not have it, and (i32) -> (i32) is not the type of an operation: upgrade wasmctl
  - import[reconciler_v1.take]: found (i32) -> (i32), expected (i32, i32, i32) -> (i32)
  - import[reconciler_v1.color]: found a global, expected a function
  - import[reconciler_v1.now_ms]: the ABI no longer has it: rebuild the module with the current SDK
  - import[env.abort]: this host has no module "env": only reconciler_v1 and wasi_snapshot_preview1 can be imported from
  - import[wasi_snapshot_preview1.fd_teleport]: WASI preview 1 does not have it
  - import[wasi_snapshot_preview1.proc_exit]: found () -> (), expected (i32) -> ()`},
		{"a command", wasm.Command, text + "export[_start]: built as a command, not as a reactor: build it with wasmctl build (Rust: as a library with crate-type cdylib, see wasmctl new)"},
		{"ABI 2", wasm.ABI2, text + "module wants reconciler ABI 2, this host has 1: upgrade wasmctl"},
		{
			"manifest is not msgpack", withSection(wasm.Empty, abi.ManifestSection, []byte{0xc1}),
			text + "section[reconciler.manifest]: manifest: msgpack type is not allowed here: byte 0xc1 (binary and extension types do not cross the sandbox boundary)",
		},
		{
			"two manifests", withSection(withSection(wasm.Empty, abi.ManifestSection, []byte{0x80}), abi.ManifestSection, []byte{0x80}),
			text + `section[reconciler.manifest]: manifest 1 of 2: name "": each needs a name of its own`,
		},
		{
			"requires", withManifest(tb, wasm.Empty, &abi.Manifest{Requires: []string{"cache_get", "teleport"}}),
			text + `manifest: requires "teleport", which this host does not have: upgrade wasmctl`,
		},
		{
			"memory over the manifest's limit", withManifest(tb, wasm.Calls, &abi.Manifest{Limits: &abi.Limits{Memory: 3 * share.PageSize}}),
			text + "memory: needs 256Ki to start, the limit is 192Ki: raise the memory limit",
		},
	}
}

func TestLoad_BadModuleSaysEveryProblem(t *testing.T) {
	for _, tc := range badModules(t) {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Load(t.Context(), tc.wasm, Config{Name: "m", API: apiOf(nil)})
			if !errors.Is(err, load.ErrInvalidModule) {
				t.Fatalf("got %v, want an ErrInvalidModule", err)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What Inspect reports is what Load refuses for, word for word, and nothing for
// a module that loads.
func TestInspect_ProblemsAreThoseOfLoad(t *testing.T) {
	for _, tc := range badModules(t) {
		var invalid *load.InvalidError
		if _, err := Load(t.Context(), tc.wasm, Config{API: apiOf(nil)}); !errors.As(err, &invalid) {
			t.Fatalf("%s: got %v, want an InvalidError", tc.name, err)
		}
		if diff := cmp.Diff(invalid.Problems, load.Inspect(t.Context(), tc.wasm).Problems); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	for _, good := range [][]byte{wasm.Empty, wasm.Modes, wasm.Calls, wasm.WASI, wasm.Init, wasm.Describe, wasm.ABI12} {
		if p := load.Inspect(t.Context(), good).Problems; len(p) > 0 {
			t.Errorf("a good module has problems: %v", p)
		}
		loaded(t, good, Config{API: apiOf(nil)})
	}
}

// A body that does not validate is found by both without being run.
func TestLoad_InvalidCodeIsRefused(t *testing.T) {
	bad := bytes.Replace(wasm.Empty, []byte{0x42, 0x00, 0x0b}, []byte{0x41, 0x00, 0x0b}, 1) // i64.const becomes i32.const
	_, err := Load(t.Context(), bad, Config{})
	if !errors.Is(err, load.ErrInvalidModule) || !strings.Contains(err.Error(), "cannot be compiled: invalid function") {
		t.Errorf("got %v", err)
	}
	if p := load.Inspect(t.Context(), bad).Problems; len(p) != 1 || !strings.Contains(p[0], "cannot be compiled: invalid function") {
		t.Errorf("Inspect: got %v", p)
	}
}

// Start code runs when a module is loaded, not when it is first needed.
func TestLoad_FailsFastWhereStartCodeFails(t *testing.T) {
	for _, tc := range []struct {
		name string
		wasm []byte
		kind abi.FailureKind
		want string
	}{
		{"start function", wasm.StartTrap, abi.FailureTrap, "wasm error: unreachable"},
		{"exit", wasm.InitExit, abi.FailureTrap, "guest[_initialize]: trap: exited with code 0"},
		{"spins", wasm.InitSpin, abi.FailureTimeout, "guest[_initialize]: timeout: exceeded its time limit (timeout 20ms)"},
		{"describe", wasm.DescribeBad, abi.FailureOutput, "guest[describe]: output: manifest: msgpack type is not allowed here: want a map"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var limits share.Limits
			if tc.kind == abi.FailureTimeout {
				limits.Timeout = 20 * time.Millisecond
			}
			_, err := Load(t.Context(), tc.wasm, Config{Name: "m", Limits: limits})
			if !errors.Is(err, load.ErrInvalidModule) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an ErrInvalidModule with %q", err, tc.want)
			}
			if ce := callError(t, err); ce.Kind != tc.kind {
				t.Errorf("got kind %q, want %q", ce.Kind, tc.kind)
			}
		})
	}
}

func TestLoad_SizeCap(t *testing.T) {
	_, err := Load(t.Context(), make([]byte, load.MaxModuleSize+1), Config{Name: "m"})
	if want := "module[m]: is 134217729 bytes long, the limit is 134217728"; !errors.Is(err, load.ErrInvalidModule) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestLoad_ConfigIsChecked(t *testing.T) {
	for _, cfg := range []Config{{Concurrency: -1}, {Limits: share.Limits{Memory: -1}}, {Limits: share.Limits{Memory: 4<<30 + 1}}, {Limits: share.Limits{Timeout: -1}}} {
		if _, err := Load(t.Context(), wasm.Empty, cfg); err == nil || errors.Is(err, load.ErrInvalidModule) {
			t.Errorf("%+v: got %v, want an error that is not the module's", cfg, err)
		}
	}
}

func TestLoad_EndOfContextIsNotTheModulesFault(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, wasm.Empty, Config{}); !errors.Is(err, context.Canceled) || errors.Is(err, load.ErrInvalidModule) {
		t.Errorf("got %v, want context.Canceled only", err)
	}
}

// The config's concurrency beats the manifest's, which beats the default.
func TestLoad_ConfigOverridesManifest(t *testing.T) {
	man := withManifest(t, wasm.Empty, &abi.Manifest{Concurrency: 7})
	for want, m := range map[int]*Module{
		7: loaded(t, man, Config{}), 2: loaded(t, man, Config{Concurrency: 2}), DefaultConcurrency: loaded(t, wasm.Empty, Config{}),
	} {
		if m.Concurrency() != want {
			t.Errorf("got %d, want %d", m.Concurrency(), want)
		}
	}
}

// A module whose manifest has been written already is built again: what it
// requires of the host that runs it does not matter then.
func TestDescribe_OfAModuleThatHasAManifest(t *testing.T) {
	annotated, err := load.WithManifest(wasm.Describe, &abi.Manifest{Requires: []string{abi.CapDeclare, string(abi.OpCacheList)}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Describe(t.Context(), annotated, Config{})
	if err != nil || len(again.Requires) != 1 || again.Requires[0] != string(abi.OpConfigGet) {
		t.Errorf("%v, manifest %v: want what describe says", err, again)
	}
	if _, err := Load(t.Context(), annotated, Config{}); !errors.Is(err, load.ErrInvalidModule) {
		t.Errorf("loaded without an API: %v", err)
	}
}

func TestLoad_ManifestOfDescribe(t *testing.T) {
	want := &abi.Manifest{
		Name: "described", ABI: 1, Requires: []string{"config_get"}, Concurrency: 2, Config: map[string]string{"color": "blue"},
	}
	m := loaded(t, wasm.Describe, Config{})
	if diff := cmp.Diff(want, m.Manifest()); diff != "" || m.Concurrency() != 2 {
		t.Errorf("Load: %s, concurrency %d", diff, m.Concurrency())
	}
	got, err := Describe(t.Context(), wasm.Describe, Config{})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Describe: %v %s", err, diff)
	}
	if info := load.Inspect(t.Context(), wasm.Describe); info.Manifest != nil {
		t.Error("Inspect ran describe")
	}
	if _, err := Describe(t.Context(), wasm.Empty, Config{Name: "m"}); !errors.Is(err, load.ErrInvalidModule) {
		t.Errorf("without describe: got %v", err)
	}
}

// The limits that describe names are known only after the first instance; they
// hold for the memory that a module starts with all the same.
func TestLoad_DescribedLimitBelowTheStartSize(t *testing.T) {
	described := bytes.Replace(wasm.Describe, []byte("\xabconcurrency\x02\xa6config\x81\xa5color\xa4blue"),
		[]byte("\xa6limits\x81\xa6memory\xcd\x03\xe8\xa6config\x81\xa1c\xa3blu"), 1)
	if bytes.Equal(described, wasm.Describe) || len(described) != len(wasm.Describe) {
		t.Fatalf("%d bytes instead of %d", len(described), len(wasm.Describe))
	}
	_, err := Load(t.Context(), described, Config{})
	if want := "module[described]: memory: needs 64Ki to start, the limit is 0: raise the memory limit"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A section beats describe, and API is asked with the manifest.
func TestLoad_APIGetsTheManifest(t *testing.T) {
	var got *abi.Manifest
	cfg := Config{API: func(m *abi.Manifest) (operation.API, error) { got = m; return &scriptedAPI{}, nil }}
	loaded(t, withManifest(t, wasm.Describe, &abi.Manifest{Name: "section"}), cfg)
	if got == nil || got.Name != "section" {
		t.Errorf("API was called with %+v", got)
	}
	refused := errors.New("no such right")
	cfg.API = func(*abi.Manifest) (operation.API, error) { return nil, refused }
	if _, err := Load(t.Context(), wasm.Empty, cfg); !errors.Is(err, refused) || errors.Is(err, load.ErrInvalidModule) {
		t.Errorf("got %v, want the API's error", err)
	}
}

func TestLoad_RequiresAPIOnlyWhereThereIsOne(t *testing.T) {
	module := withManifest(t, wasm.Empty, &abi.Manifest{Requires: []string{"api_get"}})
	if _, err := Load(t.Context(), module, Config{}); !errors.Is(err, load.ErrInvalidModule) {
		t.Errorf("without an API: got %v", err)
	}
	loaded(t, module, Config{API: apiOf(nil)})
}

// A cache that cannot be used costs time and a warning, never the module.
func TestLoad_CacheDirIsOptional(t *testing.T) {
	inThisProcess(t)
	dir := t.TempDir()
	logged := func(t *testing.T, dir string) string {
		t.Helper()
		var log bytes.Buffer
		m := loaded(t, wasm.Empty, Config{Code: load.Options{CacheDir: dir}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if _, err := acquire(t, m).Reconcile(t.Context(), request(0)); err != nil {
			t.Error(err)
		}
		return log.String()
	}
	if log := logged(t, dir); log != "" {
		t.Errorf("first use: %s", log)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("cache holds %v (%v), want one file", files, err)
	}
	if log := logged(t, dir); log != "" {
		t.Errorf("second use: %s", log)
	}
	for name, damage := range map[string][]byte{"garbage": []byte("garbage, and more of it than a header"), "empty": nil, "half": nil} {
		if name == "half" {
			whole, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			damage = whole[:len(whole)/2]
		}
		if err := os.WriteFile(files[0], damage, 0o600); err != nil {
			t.Fatal(err)
		}
		if log := logged(t, dir); !strings.Contains(log, "does not authenticate") {
			t.Errorf("%s: got log %q, want a warning", name, log)
		}
		if err := os.Remove(files[0]); err != nil {
			t.Fatal(err)
		}
		logged(t, dir)
	}
	if log := logged(t, files[0]); !strings.Contains(log, "cannot use the compilation cache") || // a file, not a directory
		!strings.Contains(log, "not a directory") || !strings.Contains(log, "writable") || strings.Contains(log, "remove") {
		t.Errorf("not a directory: got log %q, want what is wrong", log)
	}
}

// A module for two ABIs is served by the newest that the host has.
func TestLoad_TwoMarkers(t *testing.T) {
	m := loaded(t, wasm.ABI12, Config{})
	if m.Info().ABI != 2 {
		t.Errorf("got ABI %d declared, want 2", m.Info().ABI)
	}
	if _, err := acquire(t, m).Reconcile(t.Context(), request(0)); err != nil {
		t.Error(err)
	}
}

// TestLoad_AModuleOfSeveralControllersRunsAsTheOneOfItsName: and no other name will do.
func TestLoad_AModuleOfSeveralControllersRunsAsTheOneOfItsName(t *testing.T) {
	both, err := load.WithManifest(wasm.Empty, &abi.Manifest{Name: "a", Concurrency: 2}, &abi.Manifest{Name: "b", Concurrency: 3})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"a": 2, "b": 3} {
		if m := loaded(t, both, Config{Name: name}); m.Concurrency() != want || m.Info().Manifest.Name != name {
			t.Errorf("%s: %+v", name, m.Info().Manifest)
		}
	}
	_, err = Load(t.Context(), both, Config{Name: "c"})
	if !errors.Is(err, load.ErrInvalidModule) || !strings.Contains(err.Error(), `has 2 controllers, and none is named "c": choose one by --controller, or by the key controller of a file or of a Reconciler's module: a, b`) {
		t.Error(err)
	}
	m := loaded(t, both, Config{Name: "a"})
	other := withManifest(t, wasm.Empty, &abi.Manifest{Name: "x", Version: "2"}) // the only one: its name does not matter
	c, err := m.Prepare(t.Context(), other, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Discard()
	lacks, err := load.WithManifest(wasm.Empty, &abi.Manifest{Name: "b"}, &abi.Manifest{Name: "c"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Prepare(t.Context(), lacks, nil); !errors.Is(err, load.ErrInvalidModule) {
		t.Errorf("swap to a module without the controller: %v", err)
	}
	info := load.Inspect(t.Context(), both)
	if info.Manifest != nil || len(info.Controllers) != 2 || len(info.Problems) > 0 {
		t.Errorf("%+v", info)
	}
}

// TestLoad_ManyManifests are refused before they are read.
func TestLoad_ManyManifests(t *testing.T) {
	module := wasm.Empty
	for range 101 {
		module = withSection(module, abi.ManifestSection, []byte{0xc1})
	}
	if _, err := Load(t.Context(), module, Config{}); err == nil || !strings.Contains(err.Error(), "found 101, the limit is 100") {
		t.Error(err)
	}
}

func TestWithManifest_ReplacesOnlyTheSection(t *testing.T) {
	first := withManifest(t, wasm.Modes, &abi.Manifest{Name: "first"})
	second := withManifest(t, first, &abi.Manifest{Name: "second", Version: "2"})
	if !bytes.HasPrefix(second, wasm.Modes) {
		t.Error("what was there is not the same byte for byte")
	}
	if again := withManifest(t, first, &abi.Manifest{Name: "second", Version: "2"}); !bytes.Equal(second, again) {
		t.Error("same input, other bytes")
	}
	if n := bytes.Count(second, []byte(abi.ManifestSection)); n != 1 {
		t.Fatalf("%d sections", n)
	}
	if m := loaded(t, second, Config{}); m.Manifest().Name != "second" {
		t.Errorf("got %+v", m.Manifest())
	}
	if _, err := load.WithManifest([]byte("no wasm"), &abi.Manifest{}); !errors.Is(err, load.ErrInvalidModule) {
		t.Errorf("no wasm: %v", err)
	}
	if _, err := load.WithManifest(wasm.Empty, &abi.Manifest{ABI: 9}); err == nil {
		t.Error("an invalid manifest was written")
	}
	if _, err := load.WithManifest(wasm.Empty, &abi.Manifest{Name: "a"}, &abi.Manifest{Name: "a"}); err == nil {
		t.Error("two manifests of one name were written")
	}
}
