// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// modules returns the folders of the examples.
func modules(t *testing.T) []string {
	t.Helper()
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) < 6 {
		t.Fatalf("found %d examples, %v", len(mains), err)
	}
	dirs := make([]string, len(mains))
	for i, m := range mains {
		dirs[i] = filepath.Dir(m)
	}
	return dirs
}

// TestExamples_BuildForWasm builds each with the standard toolchain, and checks that it is a module: the marker of the
// ABI and the host functions.
func TestExamples_BuildForWasm(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds all examples")
	}
	for _, dir := range modules(t) {
		t.Run(dir, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "module.wasm")
			cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
			if msg, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, msg)
			}
			wasm, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d KiB", dir, len(wasm)>>10)
			if !bytes.HasPrefix(wasm, []byte("\x00asm")) {
				t.Errorf("starts with %x", wasm[:4])
			}
			for _, name := range []string{"reconciler_abi_1", "reconcile", "finalize", "configure", "describe", "reconciler_v1"} {
				if !bytes.Contains(wasm, []byte(name)) {
					t.Errorf("has no %s", name)
				}
			}
		})
	}
}

// TestExamples_AreWhole: each has the files that its README needs.
func TestExamples_AreWhole(t *testing.T) {
	for _, dir := range modules(t) {
		for _, name := range []string{"README.md", "crd.yaml", "sample.yaml", "reconcile_test.go"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
		readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil || !bytes.Contains(readme, []byte("    wasmctl build ")) || !bytes.Contains(readme, []byte("# "+dir+".wasm\n")) {
			t.Errorf("%s: README.md does not say how to build %s.wasm: %v", dir, dir, err)
		}
	}
}
