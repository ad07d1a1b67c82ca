// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain puts this test binary on PATH as "wasmctl", so that tests run the command as a process, like
// users.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"wasmctl": main, "kubectl-wasmctl": main, "wasmctl-hangs": hangs, "wasmctl-follows": follows})
}

// TestScripts runs the command lines in testdata/script/*.txtar and checks their output, without a
// cluster.
func TestScripts(t *testing.T) {
	t.Parallel()
	guests, err := filepath.Abs("../../testdata/wasm")
	if err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("GUESTS", guests)
			env.Setenv("CHECKOUT", checkout)
			for name, value := range goEnv(t) {
				env.Setenv(name, value) // the defaults depend on HOME, which is replaced
			}
			env.Setenv("HOME", env.WorkDir)
			for _, name := range []string{"XDG_CACHE_HOME", "XDG_CONFIG_HOME"} { // compiled modules, and their key
				env.Setenv(name, filepath.Join(os.TempDir(), "wasmctl-guests", "scripts"))
			}
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "no-kubeconfig"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// goEnv returns the environment variables for the caches of the go command.
func goEnv(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "-json", "GOCACHE", "GOMODCACHE", "GOPROXY").Output()
	var vars map[string]string
	if err == nil {
		err = json.Unmarshal(out, &vars)
	}
	if err != nil {
		t.Fatal(err)
	}
	return vars
}

// exits runs "exits CODE COMMAND ARGS...": the command must exit with CODE.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%v: exit code %d, want %d", args[1:], got, want)
	}
}

// TestExitCodes_PageHasTheTable: the documentation has the same table of exit codes.
func TestExitCodes_PageHasTheTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exitCodes {
		if line := "| " + strconv.Itoa(e.code) + " | " + e.text + " |"; !containsLine(string(page), line) {
			t.Errorf("docs/exit-codes.md lacks %q", line)
		}
	}
}

func containsLine(text, line string) bool {
	for l := range strings.Lines(text) {
		if strings.TrimSpace(l) == line {
			return true
		}
	}
	return false
}
