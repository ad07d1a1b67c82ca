// SPDX-License-Identifier: Apache-2.0

package serve_test

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

// TestServePage_CommandsWork runs the ten commands of the first section of
// docs/serve.md, one after the other, from nothing, and checks their results.
func TestServePage_CommandsWork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("SKIPPED: kubectl is not on PATH: the commands of docs/serve.md are not run")
	}
	_, page, _ := strings.Cut(string(e2e.ReadFile(t, "../../../docs/serve.md")), "\n## From nothing")
	page, _, _ = strings.Cut(page, "\n## ")
	var commands []string
	for _, m := range regexp.MustCompile(`(?m)^    (.+)$`).FindAllStringSubmatch(page, -1) {
		commands = append(commands, m[1])
	}
	if len(commands) != 10 || !strings.HasSuffix(commands[0], " && bin/wasmctl serve --dev") { // make was run before the tests
		t.Fatalf("%q", commands)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	home, dir := t.TempDir(), t.TempDir()
	built, err := exec.LookPath("wasmctl")
	check(err)
	check(os.MkdirAll(filepath.Join(dir, "bin"), 0o755)) //nolint:gosec // a directory
	check(os.Symlink(built, filepath.Join(dir, "bin", "wasmctl")))
	for _, name := range []string{"examples", "bin/examples"} {
		target, err := filepath.Abs(filepath.Join("../../..", name))
		check(err)
		check(os.Symlink(target, filepath.Join(dir, name)))
	}
	env := append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME=", "WASMCTL_DEVCLUSTER="+devclustertest.Binary(t))
	serve := exec.Command(filepath.Join(dir, "bin", "wasmctl"), "serve", "--dev")
	serve.Env = env
	c := e2e.Start(t, serve)
	c.WantLine("export KUBECONFIG=" + filepath.Join(home, ".cache/wasmctl/dev/kubeconfig"))
	c.WantLine("waiting for CRD ", "; wasmctl crds | kubectl apply -f -")
	rest := exec.Command("bash", "-euxo", "pipefail", "-c", strings.Join(commands[1:], "\n"))
	rest.Env, rest.Dir = env, dir
	if out, err := rest.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
