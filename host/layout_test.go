// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"os"
	"testing"

	"github.com/wasmctl/wasmctl/host/internal/layout"
	"github.com/wasmctl/wasmctl/host/load"
)

// TestLoad_CodeLiesInAFile: code of a megabyte lies in a file, whether it was just compiled
// or comes from the cache, is shared or not, and behaves as it does in memory. Its memory
// is released once the module is loaded, and can be at any time.
func TestLoad_CodeLiesInAFile(t *testing.T) {
	inThisProcess(t)
	if err := layout.Suits(os.TempDir(), 100<<20); err != nil {
		t.Skip("SKIPPED: no files for code here: ", err)
	}
	module, err := os.ReadFile("../bin/examples/configmapgenerator.wasm")
	if err != nil {
		t.Skip("SKIPPED: the examples are not built: make guests: ", err)
	}
	want := outcomes(t, module, Config{}) // compiled in this process, which leaves it in memory
	cfg := Config{Code: load.Options{CacheDir: t.TempDir()}, API: apiOf(nil)}
	shared := cfg
	shared.Process.Codes = &Codes{}
	for _, cfg := range []Config{cfg, cfg, shared, shared} {
		m := loaded(t, module, cfg)
		code := m.last.Load().program
		if code.InFile() < layout.MinSize {
			t.Fatalf("%d bytes of code are in a file", code.InFile())
		}
		for range 3 {
			g, release, err := m.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
				t.Error(err)
			}
			code.Rest()
			release()
		}
		if got := outcomes(t, module, cfg); len(got) != len(want) || got[0] != want[0] {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if in := loaded(t, module, Config{API: apiOf(nil)}).last.Load().program.InFile(); in != 0 {
		t.Errorf("%d bytes of code that was compiled here are in a file", in)
	}
}

// TestLoad_WithoutLayout: a host that knows nothing about the layouts of package layout
// compiles modules, loads them from the cache and runs them as always: also from a cache
// that was filled with code apart. Each instance runs the start code.
func TestLoad_WithoutLayout(t *testing.T) {
	inThisProcess(t)
	module, err := os.ReadFile("../bin/examples/configmapgenerator.wasm")
	if err != nil {
		t.Skip("SKIPPED: the examples are not built: make guests: ", err)
	}
	cfg := Config{Code: load.Options{CacheDir: t.TempDir()}, API: apiOf(nil)}
	want := outcomes(t, module, cfg)
	defer layout.Disable()()
	for i := range 2 { // from a cache with code apart, which is compiled again, and then from one with whole files
		if got := outcomes(t, module, cfg); len(got) != len(want) || got[0] != want[0] {
			t.Errorf("%d: got %q, want %q", i, got, want)
		}
		m := loaded(t, module, cfg)
		anotherLease(t, m)
		if !errors.Is(m.NoImage(), layout.ErrDisabled) {
			t.Errorf("%d: an image was made: %v", i, m.NoImage())
		}
		if in := m.last.Load().program.InFile(); in != 0 {
			t.Errorf("%d: %d bytes of code are in a file", i, in)
		}
	}
}
