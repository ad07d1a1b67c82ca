package host

import (
	"os"
	"testing"

	"github.com/wasmctl/wasmctl/host/internal/codefile"
)

// TestLoad_CodeLiesInAFile: code of a megabyte lies in a file, just compiled or from the
// cache, shared or not, and does what it does in memory. It rests once the module is
// loaded, and at any time.
func TestLoad_CodeLiesInAFile(t *testing.T) {
	inThisProcess(t)
	if err := codefile.Suits(os.TempDir(), 100<<20); err != nil {
		t.Skip("SKIPPED: no files for code here: ", err)
	}
	module, err := os.ReadFile("../bin/examples/configmapgenerator.wasm")
	if err != nil {
		t.Skip("SKIPPED: the examples are not built: make guests: ", err)
	}
	want := outcomes(t, module, Config{}) // compiled in this process, which leaves it in memory
	cfg := Config{CacheDir: t.TempDir(), API: apiOf(nil)}
	shared := cfg
	shared.Codes = &Codes{}
	for _, cfg := range []Config{cfg, cfg, shared, shared} {
		m := load(t, module, cfg)
		code := m.last.Load().code
		if len(code.inFile) < codefile.MinSize {
			t.Fatalf("%d bytes of code are in a file", len(code.inFile))
		}
		for range 3 {
			g, release, err := m.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
				t.Error(err)
			}
			code.rest()
			release()
		}
		if got := outcomes(t, module, cfg); len(got) != len(want) || got[0] != want[0] {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if in := load(t, module, Config{API: apiOf(nil)}).last.Load().code.inFile; in != nil {
		t.Errorf("%d bytes of code that was compiled here are in a file", len(in))
	}
}
