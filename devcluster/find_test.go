// SPDX-License-Identifier: Apache-2.0

package devcluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster"
)

// script writes a program that replaces devcluster.
func script(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "devcluster")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind_VariableThenPathThenHowToGetOne(t *testing.T) {
	named, onPath := script(t, t.TempDir(), ""), script(t, t.TempDir(), "")
	t.Setenv(devcluster.EnvBinary, named)
	t.Setenv("PATH", filepath.Dir(onPath))
	if got, err := devcluster.Find(); got != named {
		t.Errorf("with the variable: %s (%v), want %s", got, err, named)
	}
	t.Setenv(devcluster.EnvBinary, "")
	if got, err := devcluster.Find(); got != onPath {
		t.Errorf("without the variable: %s (%v), want %s", got, err, onPath)
	}
	t.Setenv("PATH", t.TempDir())
	_, err := devcluster.Find()
	if !errors.Is(err, devcluster.ErrNotFound) {
		t.Fatalf("nowhere: %v, want ErrNotFound", err)
	}
	for _, want := range []string{"make devcluster", devcluster.EnvBinary} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
}

// The first place is next to the running executable, here the test binary.
func TestFind_BesideTheExecutableComesBeforePath(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	beside := script(t, filepath.Dir(self), "")
	t.Cleanup(func() { _ = os.Remove(beside) })
	t.Setenv(devcluster.EnvBinary, "")
	t.Setenv("PATH", filepath.Dir(script(t, t.TempDir(), "")))
	if got, err := devcluster.Find(); got != beside {
		t.Errorf("%s (%v), want %s", got, err, beside)
	}
}

// A wrong path is an error, and not a reason to run another program.
func TestFind_WrongVariableIsAnError(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(script(t, t.TempDir(), "")))
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir(), plain} {
		t.Setenv(devcluster.EnvBinary, path)
		got, err := devcluster.Find()
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %s (%v), want an error that names it", path, got, err)
		}
	}
}

// Whatever the program does, Start returns, includes the program's output, and leaves no process.
func TestStart_WrongProgramIsExplained(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"fails":             {"echo 'devcluster: no luck today' >&2; exit 1", "start: no luck today"},
		"ends":              {"exit 0", "the program exited"},
		"says another text": {"echo /a/kubeconfig; exec cat", "is this the devcluster of this wasmctl version"},
		"is not a program":  {"exit 127", "exit status 127"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := devcluster.Start(limited(t), devcluster.Config{Binary: script(t, t.TempDir(), tc.text)})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestRestart_WithoutDataDirIsRefused(t *testing.T) {
	program := script(t, t.TempDir(), `echo '{"url":"https://127.0.0.1:1","kubeconfig":"'"$0.kubeconfig"'"}'; cat`)
	kubeconfig := `{"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`
	if err := os.WriteFile(program+".kubeconfig", []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, devcluster.Config{Binary: program})
	if err := c.Restart(limited(t)); err == nil || !strings.Contains(err.Error(), "DataDir") {
		t.Errorf("restart without a data dir: %v", err)
	}
}
