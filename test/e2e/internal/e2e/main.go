// SPDX-License-Identifier: Apache-2.0

// Package e2e starts processes of wasmctl for the tests of test/e2e.
//
// Each package there has
//
//	func TestMain(m *testing.M) { e2e.Main(m) }
//
// Its tests run the command as users do: as a process, against the control plane of
// devclustertest. make sets WASMCTL_BINARY and WASMCTL_EXAMPLES to the built files. If
// they are not set, Main runs make build, and Example builds an example.
package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// Exit codes of wasmctl; docs/exit-codes.md describes them.
const (
	ExitOK       = 0
	ExitError    = 1
	ExitUsage    = 2
	ExitModule   = 3
	ExitCluster  = 4
	ExitKind     = 5
	ExitDenied   = 6
	ExitForced   = 7
	ExitLost     = 8
	ExitListen   = 9
	ExitDiffers  = 10
	ExitRegistry = 11
)

const (
	// EnvBinary names the wasmctl that tests run.
	EnvBinary = "WASMCTL_BINARY"
	// EnvExamples names the directory of the examples that tests run.
	EnvExamples = "WASMCTL_EXAMPLES"
)

// All reports whether make test-all runs, whose tests have more objects.
func All() bool { return os.Getenv("WASMCTL_TESTS") == "all" }

// root is the directory of the repository, from that of a test.
const root = "../../.."

// Main puts wasmctl on PATH, runs the tests, and exits.
func Main(m *testing.M) {
	binary, err := findBinary()
	if err == nil {
		err = os.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "wasmctl:", err)
		os.Exit(1)
	}
	devclustertest.Main(m)
}

// findBinary returns the path of the binary, and reads its time and size: without
// that, go test would not know that its results depend on them.
func findBinary() (string, error) {
	path := os.Getenv(EnvBinary)
	if path == "" {
		path = filepath.Join(root, "bin", "wasmctl")
		if err := makeBinary(); err != nil {
			return "", err
		}
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	return path, err
}

// makeBinary runs make build. Packages whose tests run at the same time take turns, so
// one of them builds, and the others find that nothing has changed.
func makeBinary() (err error) {
	lock, err := os.Create(filepath.Join(os.TempDir(), "wasmctl-make-build.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if out, err := exec.Command("make", "-C", root, "build").CombinedOutput(); err != nil {
		return fmt.Errorf("make build: %w: %s", err, out)
	}
	return nil
}
