// SPDX-License-Identifier: Apache-2.0

package wasm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each .wasm is what its .wat says, byte for byte, so that nobody has to trust
// the committed binaries.
func TestWasm_IsBuiltFromItsSource(t *testing.T) {
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("SKIPPED: wat2wasm (Debian package wabt) is not on PATH: the modules are not compared with their sources")
	}
	sources, err := filepath.Glob("*.wat")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no .wat files: %v", err)
	}
	for _, src := range sources {
		out := filepath.Join(t.TempDir(), "out.wasm")
		if msg, err := exec.CommandContext(t.Context(), tool, "-o", out, src).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", src, err, msg)
			continue
		}
		want, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(strings.TrimSuffix(src, ".wat") + ".wasm"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: its .wasm is stale (%v): run build.sh", src, err)
		}
	}
}
