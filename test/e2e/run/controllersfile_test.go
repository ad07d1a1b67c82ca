// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestControllersFile_ChangesTouchOnlyWhatTheyAreAbout: controllers are added, changed
// and removed while the others run. A controller that cannot start does not stop them,
// and an invalid file changes nothing.
func TestControllersFile_ChangesTouchOnlyWhatTheyAreAbout(t *testing.T) {
	ns, kubeconfig := e2e.NewConfigMaps(t)
	dir := t.TempDir()
	for name, module := range map[string][]byte{"one.wasm": enginetest.Worse(enginetest.Good, 1), "two.wasm": enginetest.Worse(enginetest.Good, 2), "other.wasm": enginetest.Worse(enginetest.Good, 3), "last.wasm": enginetest.Worse(enginetest.Good, 5)} {
		e2e.Replace(t, filepath.Join(dir, name), module)
	}
	file := filepath.Join(dir, "controllers.yaml")
	write := func(controllers ...string) {
		e2e.Replace(t, file, []byte("apiVersion: wasmctl.dev/v1\nkind: Controllers\ndefaults: {for: cm, grant: {manifest: true}, namespaces: "+ns+", rollout: {probation: 0s}}\ncontrollers:\n"+
			strings.Join(controllers, "\n")+"\n"))
	}
	const one, bad = "- {name: one, module: one.wasm}", "- {name: bad, module: not-there.wasm}"
	two := func(more string) string { return fmt.Sprintf("- {name: two%s}", more) }
	write(one, two(", module: two.wasm"), bad)
	socket := e2e.NewSocket(t)
	c := e2e.Run(t, "-f", file, "--socket", socket, "--kubeconfig", kubeconfig)
	c.WantLine(`"msg":"reconciled"`, `"controller":"one"`, ns+"/o0")
	c.WantLine(`"msg":"reconciled"`, `"controller":"two"`, ns+"/o0")
	c.WantLine(`"msg":"controller failed to start; retrying"`, `"controller":"bad"`, "no such file")
	enginetest.Until(t, "status shows the state of each controller", func() bool {
		now := e2e.ControllersOf(t, socket)
		return len(now) == 3 && now["one"].Phase == admin.PhaseRunning && now["bad"].Phase == admin.PhaseFailed && strings.Contains(now["bad"].Message, "no such file")
	})
	if text := e2e.Steer(t, "status", socket); !strings.Contains(text, "failed: module[") {
		t.Errorf("status:\n%s", text)
	}
	startedAt := e2e.ControllersOf(t, socket)["one"].Since

	write(one, two(", module: two.wasm, config: {greeting: hello}")) // other settings, and one controller less
	c.WantLine(`"msg":"settings applied"`, `"controller":"two"`)
	c.WantLine(`"msg":"controllers updated from the file"`, `"added":0,"changed":1,"removed":1`)
	write(one, two(", module: other.wasm, config: {greeting: hello}")) // another module
	c.WantLine(`"msg":"module swapped"`, `"controller":"two"`)
	if got := e2e.ControllersOf(t, socket)["two"].Digest; got != load.DigestOf(enginetest.Worse(enginetest.Good, 3)) {
		t.Errorf("%s runs", got)
	}
	e2e.Replace(t, filepath.Join(dir, "other.wasm"), enginetest.Worse(enginetest.Good, 4)) // which is watched from now on
	c.WantLine(`"msg":"module swapped"`, `"why":"module file changed"`, `"controller":"two"`)
	write(one, two(", module: last.wasm, concurrency: 2"), "- {name: three, module: two.wasm}") // a change that needs a restart, with another module, and another controller
	c.WantLine(`"msg":"stopped"`, `"controller":"two"`)
	c.WantLine(`"msg":"module swapped"`, `"why":"the controllers file names another module"`, `"controller":"two"`)
	c.WantLine(`"msg":"controllers updated from the file"`, `"added":1,"changed":1,"removed":0`)
	c.WantLine(`"msg":"reconciled"`, `"controller":"three"`)
	if err := os.WriteFile(file, []byte("kind: Contollers\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.WantLine(`"msg":"invalid controllers file; controllers unchanged"`, "kind: ")
	enginetest.Until(t, "all three run", func() bool {
		now := e2e.ControllersOf(t, socket)
		return len(now) == 3 && now["one"].Phase == admin.PhaseRunning && now["two"].Phase == admin.PhaseRunning && now["three"].Phase == admin.PhaseRunning
	})
	if got := e2e.ControllersOf(t, socket)["one"]; !got.Since.Equal(startedAt) || len(got.Revisions) != 1 {
		t.Errorf("the controller that no change was about: %+v", got)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestControllersFile_FilesThatComeLater: a controller whose settings or grant file is
// missing does not stop the others, and starts as soon as the file exists.
func TestControllersFile_FilesThatComeLater(t *testing.T) {
	t.Parallel()
	ns, kubeconfig := e2e.NewConfigMaps(t)
	dir := t.TempDir()
	e2e.Replace(t, filepath.Join(dir, "one.wasm"), enginetest.Worse(enginetest.Good, 1))
	e2e.Replace(t, filepath.Join(dir, "two.wasm"), enginetest.Worse(enginetest.Good, 2))
	file := filepath.Join(dir, "controllers.yaml")
	e2e.Replace(t, file, []byte("apiVersion: wasmctl.dev/v1\nkind: Controllers\ndefaults: {for: cm, namespaces: "+ns+"}\ncontrollers:\n"+
		"- {name: one, module: one.wasm, grant: {manifest: true}}\n- {name: two, module: two.wasm, grantFile: grant.yaml, configFile: settings.yaml}\n"))
	c := e2e.Run(t, "-f", file, "--socket", "none", "--kubeconfig", kubeconfig)
	c.WantLine(`"msg":"controller failed to start; retrying"`, `"controller":"two"`, "no such file")
	c.WantLine(`"msg":"reconciled"`, `"controller":"one"`, ns+"/o0")
	e2e.Replace(t, filepath.Join(dir, "settings.yaml"), []byte("greeting: hello\n"))
	e2e.Replace(t, filepath.Join(dir, "grant.yaml"), []byte("apiVersion: wasmctl.dev/v1\nkind: Grant\ncapabilities:\n- {resource: configmaps, verbs: [get, list, watch]}\n"))
	c.WantLine(`"msg":"reconciled"`, `"controller":"two"`, ns+"/o0")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestRun_SeveralModules: several modules share a process. If none can start, it ends
// with the exit code of the cause.
func TestRun_SeveralModules(t *testing.T) {
	ns, kubeconfig := e2e.NewConfigMaps(t)
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.wasm"), filepath.Join(dir, "two.wasm")
	manifest := func(name string) []byte {
		return enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{Name: name, For: &abi.Watch{Version: "v1", Kind: "ConfigMap"}})
	}
	e2e.Replace(t, one, manifest("one"))
	e2e.Replace(t, two, manifest("two"))
	c := e2e.Run(t, one, two, "-n", ns, "--socket", "none", "--kubeconfig", kubeconfig)
	c.WantLine(`"msg":"reconciled"`, `"controller":"one"`, ns+"/o0")
	c.WantLine(`"msg":"reconciled"`, `"controller":"two"`, ns+"/o0")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)

	e2e.Replace(t, two, manifest("one"))
	c = e2e.Run(t, one, two, "-n", ns, "--socket", "none", "--kubeconfig", kubeconfig)
	c.WantExit(e2e.ExitUsage)
	if text := c.Text(); !e2e.ContainsAll(text, []string{"one.wasm", "two.wasm"}) {
		t.Errorf("output: %s", text)
	}

	c = e2e.Run(t, filepath.Join(dir, "a.wasm"), filepath.Join(dir, "b.wasm"), "--socket", "none", "--kubeconfig", kubeconfig)
	c.WantExit(e2e.ExitModule)
	if text := c.Text(); !e2e.ContainsAll(text, []string{"no controller could be started", "a.wasm", "b.wasm"}) {
		t.Errorf("output: %s", text)
	}
}

// TestRun_AModuleOfSeveralControllers: a module runs as all of its controllers, each
// with its own rights, or as the one that is named.
func TestRun_AModuleOfSeveralControllers(t *testing.T) {
	ns, kubeconfig := e2e.NewConfigMaps(t)
	dir := t.TempDir()
	module, grants := filepath.Join(dir, "both.wasm"), filepath.Join(dir, "grant.yaml")
	asks := func(name, resource string) *abi.Manifest {
		m := enginetest.MayWrite(resource)
		m.Name, m.For = name, &abi.Watch{Version: "v1", Kind: "ConfigMap"}
		return m
	}
	e2e.Replace(t, module, enginetest.WithManifest(t, enginetest.Good, asks("one", "configmaps"), asks("two", "secrets")))
	e2e.Replace(t, grants, []byte(e2e.Output(t, "grant", module, "--kubeconfig", kubeconfig)))
	with := func(more ...string) *e2e.Process {
		return e2e.Run(t, append([]string{module, "-n", ns, "--socket", "none", "--kubeconfig", kubeconfig}, more...)...)
	}
	c := with("--grant", grants)
	c.WantLine(`"msg":"reconciled"`, `"controller":"one"`, ns+"/o0")
	c.WantLine(`"msg":"reconciled"`, `"controller":"two"`, ns+"/o0")
	c.WantLine(`"msg":"module rights"`, "patch, update, delete configmaps", `"controller":"one"`)
	c.WantLine(`"msg":"module rights"`, "patch, update, delete secrets", `"controller":"two"`)
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)

	c = with("--controller", "two", "--name", "mine")
	c.WantLine(`"msg":"reconciled"`, `"controller":"mine"`, ns+"/o0")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	if text := c.Text(); strings.Contains(text, `"controller":"one"`) {
		t.Errorf("one controller was asked for: %s", text)
	}

	for args, want := range map[string]string{
		"grant " + module + " --name three": "has no controller \"three\": want one of one, two",
		"rbac " + module:                    "name: wasmctl-both",
		"rbac --serve --constrained-impersonation --as system:serviceaccount:a:b " + module: "- secrets",
	} {
		_, got := e2e.Exec(t, nil, append(strings.Split(args, " "), "--kubeconfig", kubeconfig)...)
		if !strings.Contains(got, want) {
			t.Errorf("%s: want %q in %s", args, want, got)
		}
	}

	c = with("--controller", "three")
	c.WantExit(e2e.ExitModule)
	if text := c.Text(); !strings.Contains(text, "Reconciler's module: one, two") {
		t.Errorf("output: %s", text)
	}
	c = with("--for", "secret")
	c.WantExit(e2e.ExitUsage)
}

// TestConfigCheck_FindsSettingsThatAModuleDoesNotHave: an error that would stop a
// controller at its start is found without a cluster.
func TestConfigCheck_FindsSettingsThatAModuleDoesNotHave(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "controllers.yaml")
	text := "apiVersion: wasmctl.dev/v1\nkind: Controllers\ncontrollers:\n- name: web\n  module: " + e2e.Example(t, "webapp") + "\n  config: {defaultReplicas: 2, image: x}\n"
	e2e.Replace(t, file, []byte(text))
	const want = ":4: controller[web]: image: unknown setting; want one of defaultReplicas"
	if _, got := e2e.Exec(t, nil, "config", "check", file); !strings.HasSuffix(strings.TrimSpace(got), want) {
		t.Errorf("%q, want %q", got, want)
	}
	e2e.Replace(t, file, []byte(strings.Replace(text, ", image: x", "", 1)))
	if got := e2e.Output(t, "config", "check", file); !strings.HasSuffix(got, ": 1 controller\n") {
		t.Error(got)
	}
}
