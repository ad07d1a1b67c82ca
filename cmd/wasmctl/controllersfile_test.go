package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// controllers asks a process for its controllers, by name.
func controllers(t *testing.T, socket string) map[string]admin.Controller {
	t.Helper()
	st, err := admin.NewClient(socket).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]admin.Controller{}
	for _, c := range st.Controllers {
		byName[c.Name] = c
	}
	return byName
}

// TestControllersFile_ChangesTouchOnlyWhatTheyAreAbout: controllers are added,
// changed and removed while the others go on; one that cannot start does not
// stop them; a file that is wrong changes nothing.
func TestControllersFile_ChangesTouchOnlyWhatTheyAreAbout(t *testing.T) {
	ns, kubeconfig := newConfigMaps(t)
	dir := t.TempDir()
	for name, module := range map[string][]byte{"one.wasm": enginetest.Worse(enginetest.Good, 1), "two.wasm": enginetest.Worse(enginetest.Good, 2), "other.wasm": enginetest.Worse(enginetest.Good, 3)} {
		replace(t, filepath.Join(dir, name), module)
	}
	file := filepath.Join(dir, "controllers.yaml")
	write := func(controllers ...string) {
		replace(t, file, []byte("apiVersion: wasmctl.dev/v1\nkind: Controllers\ndefaults: {for: cm, grantManifest: true, namespace: "+ns+", probation: 0s}\ncontrollers:\n"+
			strings.Join(controllers, "\n")+"\n"))
	}
	const one, bad = "- {name: one, module: one.wasm}", "- {name: bad, module: not-there.wasm}"
	two := func(more string) string { return fmt.Sprintf("- {name: two%s}", more) }
	write(one, two(", module: two.wasm"), bad)
	socket := newSocket(t)
	c := startWasmctl(t, "-f", file, "--socket", socket, "--kubeconfig", kubeconfig)
	c.wantLine(`"msg":"reconciled"`, `"controller":"one"`, ns+"/o0")
	c.wantLine(`"msg":"reconciled"`, `"controller":"two"`, ns+"/o0")
	c.wantLine(`"msg":"controller failed to start; retrying"`, `"controller":"bad"`, "no such file")
	enginetest.Until(t, "status says how each does", func() bool {
		now := controllers(t, socket)
		return len(now) == 3 && now["one"].Phase == admin.PhaseRunning && now["bad"].Phase == admin.PhaseFailed && strings.Contains(now["bad"].Message, "no such file")
	})
	if text := steer(t, "status", socket); !strings.Contains(text, "failed: module[") {
		t.Errorf("status:\n%s", text)
	}
	startedAt := controllers(t, socket)["one"].Since

	write(one, two(", module: two.wasm, config: {greeting: hello}")) // settings, and one less
	c.wantLine(`"msg":"settings applied"`, `"controller":"two"`)
	c.wantLine(`"msg":"controllers updated from the file"`, `"added":0,"changed":1,"removed":1`)
	write(one, two(", module: other.wasm, config: {greeting: hello}")) // another module
	c.wantLine(`"msg":"module swapped"`, `"controller":"two"`)
	if got := controllers(t, socket)["two"].Digest; got != host.DigestOf(enginetest.Worse(enginetest.Good, 3)) {
		t.Errorf("%s runs", got)
	}
	replace(t, filepath.Join(dir, "other.wasm"), enginetest.Worse(enginetest.Good, 4)) // which is watched from now on
	c.wantLine(`"msg":"module swapped"`, `"why":"module file changed"`, `"controller":"two"`)
	write(one, two(", module: other.wasm, concurrency: 2"), "- {name: three, module: two.wasm}") // what takes a start, and one more
	c.wantLine(`"msg":"stopped"`, `"controller":"two"`)
	c.wantLine(`"msg":"controllers updated from the file"`, `"added":1,"changed":1,"removed":0`)
	c.wantLine(`"msg":"reconciled"`, `"controller":"three"`)
	if err := os.WriteFile(file, []byte("kind: Contollers\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.wantLine(`"msg":"invalid controllers file; controllers unchanged"`, "kind: ")
	enginetest.Until(t, "all three run", func() bool {
		now := controllers(t, socket)
		return len(now) == 3 && now["one"].Phase == admin.PhaseRunning && now["two"].Phase == admin.PhaseRunning && now["three"].Phase == admin.PhaseRunning
	})
	if got := controllers(t, socket)["one"]; !got.Since.Equal(startedAt) || len(got.Revisions) != 1 {
		t.Errorf("the controller that no change was about: %+v", got)
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}

// TestControllersFile_FilesThatComeLater: a controller whose files of settings and
// of its grant are not there at the start does not stop the others, and starts
// once they are.
func TestControllersFile_FilesThatComeLater(t *testing.T) {
	t.Parallel()
	ns, kubeconfig := newConfigMaps(t)
	dir := t.TempDir()
	replace(t, filepath.Join(dir, "one.wasm"), enginetest.Worse(enginetest.Good, 1))
	replace(t, filepath.Join(dir, "two.wasm"), enginetest.Worse(enginetest.Good, 2))
	file := filepath.Join(dir, "controllers.yaml")
	replace(t, file, []byte("apiVersion: wasmctl.dev/v1\nkind: Controllers\ndefaults: {for: cm, namespace: "+ns+"}\ncontrollers:\n"+
		"- {name: one, module: one.wasm, grantManifest: true}\n- {name: two, module: two.wasm, grant: grant.yaml, configFile: settings.yaml}\n"))
	c := startWasmctl(t, "-f", file, "--socket", "none", "--kubeconfig", kubeconfig)
	c.wantLine(`"msg":"controller failed to start; retrying"`, `"controller":"two"`, "no such file")
	c.wantLine(`"msg":"reconciled"`, `"controller":"one"`, ns+"/o0")
	replace(t, filepath.Join(dir, "settings.yaml"), []byte("greeting: hello\n"))
	replace(t, filepath.Join(dir, "grant.yaml"), []byte("apiVersion: wasmctl.dev/v1\nkind: Grant\ncapabilities:\n- {resource: configmaps, verbs: [get, list, watch]}\n"))
	c.wantLine(`"msg":"reconciled"`, `"controller":"two"`, ns+"/o0")
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}

// TestRun_SeveralModules share a process; where none can start, it ends with the
// code of what is wrong.
func TestRun_SeveralModules(t *testing.T) {
	ns, kubeconfig := newConfigMaps(t)
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.wasm"), filepath.Join(dir, "two.wasm")
	manifest := func(name string) []byte {
		return enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{Name: name, For: &abi.Watch{Version: "v1", Kind: "ConfigMap"}})
	}
	replace(t, one, manifest("one"))
	replace(t, two, manifest("two"))
	c := startWasmctl(t, one, two, "-n", ns, "--socket", "none", "--kubeconfig", kubeconfig)
	c.wantLine(`"msg":"reconciled"`, `"controller":"one"`, ns+"/o0")
	c.wantLine(`"msg":"reconciled"`, `"controller":"two"`, ns+"/o0")
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)

	replace(t, two, manifest("one"))
	c = startWasmctl(t, one, two, "-n", ns, "--socket", "none", "--kubeconfig", kubeconfig)
	c.wantExit(exitUsage)
	if text := c.text(); !containsAll(text, []string{"one.wasm", "two.wasm"}) {
		t.Errorf("says: %s", text)
	}

	c = startWasmctl(t, filepath.Join(dir, "a.wasm"), filepath.Join(dir, "b.wasm"), "--socket", "none", "--kubeconfig", kubeconfig)
	c.wantExit(exitModule)
	if text := c.text(); !containsAll(text, []string{"no controller could be started", "a.wasm", "b.wasm"}) {
		t.Errorf("says: %s", text)
	}
}

// TestRun_AModuleOfSeveralControllers runs as all of them, with the rights of each, or
// as one that is named.
func TestRun_AModuleOfSeveralControllers(t *testing.T) {
	ns, kubeconfig := newConfigMaps(t)
	dir := t.TempDir()
	module, grants := filepath.Join(dir, "both.wasm"), filepath.Join(dir, "grant.yaml")
	asks := func(name, resource string) *abi.Manifest {
		m := enginetest.MayWrite(resource)
		m.Name, m.For = name, &abi.Watch{Version: "v1", Kind: "ConfigMap"}
		return m
	}
	replace(t, module, enginetest.WithManifest(t, enginetest.Good, asks("one", "configmaps"), asks("two", "secrets")))
	var out bytes.Buffer
	execute(t.Context(), []string{"grant", module, "--kubeconfig", kubeconfig}, streams{in: strings.NewReader(""), out: &out, err: &out})
	replace(t, grants, out.Bytes())
	with := func(more ...string) *child {
		return startWasmctl(t, append([]string{module, "-n", ns, "--socket", "none", "--kubeconfig", kubeconfig}, more...)...)
	}
	c := with("--grant", grants)
	c.wantLine(`"msg":"reconciled"`, `"controller":"one"`, ns+"/o0")
	c.wantLine(`"msg":"reconciled"`, `"controller":"two"`, ns+"/o0")
	c.wantLine(`"msg":"module rights"`, "patch, update, delete configmaps", `"controller":"one"`)
	c.wantLine(`"msg":"module rights"`, "patch, update, delete secrets", `"controller":"two"`)
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)

	c = with("--controller", "two", "--name", "mine")
	c.wantLine(`"msg":"reconciled"`, `"controller":"mine"`, ns+"/o0")
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	if text := c.text(); strings.Contains(text, `"controller":"one"`) {
		t.Errorf("one controller was asked for: %s", text)
	}

	for args, want := range map[string]string{
		"grant " + module + " --name three": "has no controller \"three\": want one of one, two",
		"rbac " + module:                    "name: wasmctl-both",
		"rbac --serve --constrained-impersonation --as system:serviceaccount:a:b " + module: "- secrets",
	} {
		if got := says(t, args+" --kubeconfig "+kubeconfig); !strings.Contains(got, want) {
			t.Errorf("%s: want %q in %s", args, want, got)
		}
	}

	c = with("--controller", "three")
	c.wantExit(exitModule)
	if text := c.text(); !strings.Contains(text, "Reconciler's module: one, two") {
		t.Errorf("says: %s", text)
	}
	c = with("--for", "secret")
	c.wantExit(exitUsage)
}

// TestConfigCheck_FindsSettingsThatAModuleDoesNotHave: what would stop a controller at
// its start is said without a cluster.
func TestConfigCheck_FindsSettingsThatAModuleDoesNotHave(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "controllers.yaml")
	text := "apiVersion: wasmctl.dev/v1\nkind: Controllers\ncontrollers:\n- name: web\n  module: " + exampleWasm(t, "webapp") + "\n  config: {defaultReplicas: 2, image: x}\n"
	replace(t, file, []byte(text))
	const want = ":4: controller[web]: image: unknown setting; want one of defaultReplicas"
	if got := says(t, "config check "+file); !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	replace(t, file, []byte(strings.Replace(text, ", image: x", "", 1)))
	if got := says(t, "config check "+file); !strings.HasSuffix(got, ": 1 controller") {
		t.Error(got)
	}
}
