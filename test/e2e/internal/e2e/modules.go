// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// BuiltDir keeps modules and compiled code for later runs of the tests.
var BuiltDir = filepath.Join(os.TempDir(), "wasmctl-guests")

// CodeDir keeps compiled code: to compile a module of the standard toolchain takes
// seconds.
var CodeDir = filepath.Join(BuiltDir, "compiled")

// exampleModules has a function that builds an example, once, for each name.
var exampleModules sync.Map

// Example returns the file of an example that was built with the standard toolchain:
// the one in the directory that WASMCTL_EXAMPLES names. If it is not set, Example builds
// it, once for all tests of a package.
func Example(t *testing.T, name string) string {
	t.Helper()
	if dir := os.Getenv(EnvExamples); dir != "" {
		return filepath.Join(dir, name+".wasm")
	}
	build, _ := exampleModules.LoadOrStore(name, sync.OnceValues(func() (string, error) { return buildExample(name) }))
	path, err := build.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// buildExample replaces the file in one step: other packages build it at the same time.
func buildExample(name string) (path string, err error) {
	if err := os.MkdirAll(BuiltDir, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(BuiltDir, name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out, path := filepath.Join(dir, "module"), filepath.Join(BuiltDir, name+".wasm")
	cmd := exec.Command("wasmctl", "build", filepath.Join(root, "examples", name), "--file", out, "--cache-dir", CodeDir)
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, said)
	}
	return path, os.Rename(out, path)
}

// Guests is the directory of the small modules of tests.
const Guests = root + "/testdata/wasm/"
