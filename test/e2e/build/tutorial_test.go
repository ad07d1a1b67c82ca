// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// tutorial matches the blocks of docs/tutorial.md: language, attribute, content.
var tutorial = regexp.MustCompile("(?ms)^```(sh|go|text)( terminal=2)?\n(.*?)^```$")

// TestTutorial_CommandsWork types docs/tutorial.md: it runs each block of commands in
// one shell, replaces the function of each block of Go, and looks for each line of a
// block of text in the output of the commands above it.
func TestTutorial_CommandsWork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("SKIPPED: kubectl is not on PATH: the commands of docs/tutorial.md are not run")
	}
	page := string(e2e.ReadFile(t, "../../../docs/tutorial.md"))
	home, runtime := t.TempDir(), filepath.Dir(e2e.NewSocket(t))
	env := append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME=", "XDG_CONFIG_HOME=", "XDG_RUNTIME_DIR="+runtime,
		"WASMCTL_DEVCLUSTER="+devclustertest.Binary(t))
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY"} { // their defaults depend on HOME
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	checkout, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, output := t.TempDir(), ""
	var run *e2e.Process
	for _, block := range tutorial.FindAllStringSubmatch(page, -1) {
		switch lang, content := block[1], block[3]; {
		case block[2] != "":
			words := strings.Fields(content)
			cmd := exec.Command(words[0], words[1:]...)
			cmd.Env, cmd.Dir = env, filepath.Join(dir, "greeter")
			run = e2e.Start(t, cmd)
			run.WantLine("waiting for CRD ")
		case lang == "sh":
			// A test binary does not know its checkout.
			content = strings.ReplaceAll(content, "wasmctl new greeter", "wasmctl new greeter --sdk "+checkout)
			shell := exec.Command("bash", "-euo", "pipefail", "-c", content+"pwd > "+home+"/pwd; export -p > "+home+"/env")
			if b, err := os.ReadFile(filepath.Join(home, "env")); err == nil { // the shell of the block before
				shell.Args[4] = string(b) + "cd " + string(e2e.ReadFile(t, filepath.Join(home, "pwd"))) + shell.Args[4]
			}
			shell.Env, shell.Dir = env, dir
			out, err := shell.CombinedOutput()
			if output = string(out); err != nil {
				t.Fatalf("%s\n%v:\n%s", content, err, output)
			}
		case lang == "go":
			replaceFunc(t, filepath.Join(dir, "greeter", "reconcile.go"), content)
		default:
			for line := range strings.Lines(content) {
				if !strings.Contains(output, strings.TrimSpace(line)) {
					t.Errorf("the output lacks %q:\n%s", line, output)
				}
			}
		}
	}
	if run == nil {
		t.Fatal("the page runs no controller")
	}
	run.Signal(syscall.SIGTERM)
	run.WantExit(e2e.ExitOK)
}

// replaceFunc replaces the function of the same name in a file.
func replaceFunc(t *testing.T, file, fn string) {
	t.Helper()
	name, _, _ := strings.Cut(fn, "(")
	old := regexp.MustCompile(`(?ms)^` + regexp.QuoteMeta(name) + `\(.*?^}\n`)
	source := string(e2e.ReadFile(t, file))
	if !old.MatchString(source) {
		t.Fatalf("%s has no %s", file, name)
	}
	if err := os.WriteFile(file, []byte(old.ReplaceAllLiteralString(source, fn)), 0o600); err != nil {
		t.Fatal(err)
	}
}
