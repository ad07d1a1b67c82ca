package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// TestRun_GivesUpWhatItDoesNotNeed: on each of its threads, and wasmctl status says
// so.
func TestRun_GivesUpWhatItDoesNotNeed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux has seccomp")
	}
	kubeconfig := devclustertest.Shared(t).Kubeconfig()
	for mode, want := range map[string]string{"auto": "2", "off": "0"} {
		socket := newSocket(t)
		c := startWasmctl(t, guests+"empty.wasm", "--for", "cm", "--kubeconfig", kubeconfig, "--socket", socket, "--harden", mode)
		c.wantLine(`"msg":"reconciled"`)
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", c.cmd.Process.Pid))
		if len(threads) == 0 {
			t.Error("no threads")
		}
		for _, path := range threads {
			status, err := os.ReadFile(path) //nolint:gosec // of /proc
			if err == nil && !strings.Contains(string(status), "Seccomp:\t"+want+"\n") {
				t.Errorf("--harden %s: %s:\n%s", mode, path, status)
			}
		}
		if out := steer(t, "status", socket); strings.Contains(out, "hardening: not dumpable, no_new_privs, seccomp") != (mode == "auto") || strings.Contains(out, "landlock") != (mode == "auto") {
			t.Errorf("--harden %s: status:\n%s", mode, out)
		}
		c.signal(syscall.SIGTERM)
		c.wantExit(exitOK)
	}
}

// buildStatic builds wasmctl as make build does, from the same compiled packages: Landlock
// needs a binary without cgo, which that of the tests may be with.
func buildStatic(t *testing.T) string {
	t.Helper()
	path, err := staticWasmctl()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var staticWasmctl = sync.OnceValues(func() (path string, err error) {
	path = filepath.Join(builtGuests, "wasmctl")
	if err := os.MkdirAll(builtGuests, 0o700); err != nil {
		return "", err
	}
	own := fmt.Sprint(path, os.Getpid()) // others may build it at the same time
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", own, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, os.Rename(own, path)
})

// TestRun_WritesItsOwnFilesOnly: with all of the hardening a process does all of its
// work: it fills the cache, keeps its state, writes its audit, serves its socket,
// follows its files and starts processes that compile and run modules. It cannot
// write elsewhere.
func TestRun_WritesItsOwnFilesOnly(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux has Landlock")
	}
	ns, kubeconfig := newConfigMaps(t)
	dir, run := t.TempDir(), filepath.Dir(newSocket(t))
	for _, name := range []string{"home", "tmp", "audit", "elsewhere"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	one, two := filepath.Join(dir, "one.wasm"), filepath.Join(dir, "two.wasm")
	replace(t, one, enginetest.Worse(enginetest.Good, 1))
	replace(t, two, enginetest.Worse(enginetest.Good, 2))
	file := filepath.Join(dir, "controllers.yaml")
	write := func(controllers ...string) {
		replace(t, file, []byte("apiVersion: wasmctl.dev/v1\nkind: Controllers\ndefaults: {for: cm, namespace: "+ns+", probation: 0s}\ncontrollers:\n"+
			strings.Join(controllers, "\n")+"\n"))
	}
	const first = "- {name: one, module: one.wasm, audit: audit/one.yaml}"
	const second = "- {name: two, module: two.wasm, grantManifest: true, isolate: controller}"
	write(first)
	cmd := exec.Command(buildStatic(t), "run", "-f", file, "--log-format", "json", "--kubeconfig", kubeconfig, "--state-dir", filepath.Join(dir, "state"), "--harden", "required")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "home"), "TMPDIR="+filepath.Join(dir, "tmp"), "XDG_RUNTIME_DIR="+run, "XDG_CACHE_HOME=", "XDG_CONFIG_HOME=")
	c := startChild(t, cmd)
	c.wantLine(`"msg":"reconciled"`, `"controller":"one"`, ns+"/o0")
	socket := filepath.Join(run, "wasmctl", strconv.Itoa(cmd.Process.Pid)+".sock")
	enginetest.Until(t, "the socket is there", func() bool { _, err := os.Stat(socket); return err == nil })
	if out := steer(t, "status", socket); !strings.Contains(out, "hardening: not dumpable, no_new_privs, seccomp, landlock v") {
		t.Errorf("status:\n%s", out)
	}
	write(first, second)
	c.wantLine(`"msg":"reconciled"`, `"controller":"two"`, ns+"/o0")
	replace(t, one, enginetest.Worse(enginetest.Good, 3))
	c.wantLine(`"msg":"module swapped"`, `"why":"module file changed"`, `"controller":"one"`)
	if out := steer(t, "swap", socket, "two", one, "--wait"); !strings.Contains(out, "is live") {
		t.Errorf("swap: %s", out)
	}
	for _, pattern := range []string{"home/.cache/wasmctl/modules/*", "home/.config/wasmctl/cache.key", "state/*", "audit/one.yaml"} {
		if found, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(found) == 0 {
			t.Errorf("no %s: %v", pattern, err)
		}
	}
	if text := c.text(); strings.Contains(text, "denied") || strings.Contains(text, `"level":"ERROR"`) || strings.Contains(text, `"level":"WARN"`) {
		t.Errorf("log:\n%s", text)
	}
	write(first, second, "- {name: three, module: two.wasm, audit: elsewhere/three.yaml}")
	c.wantLine("cannot be written", "permission denied")
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	left, _ := filepath.Glob(filepath.Join(dir, "tmp", "*"))
	if _, err := os.Stat(socket); err == nil || len(left) > 0 {
		t.Errorf("left: socket: %v, %q", err, left)
	}
}

// TestRun_PluginOfTheKubeconfigKeepsItsFiles: it writes where it likes, and starts
// what it likes.
func TestRun_PluginOfTheKubeconfigKeepsItsFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux has Landlock")
	}
	rc := devclustertest.Shared(t).RESTConfig()
	dir, socket := t.TempDir(), newSocket(t)
	note := filepath.Join(dir, "note")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: rc.Host, CertificateAuthorityData: rc.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		Command: "sh", Args: []string{"-c", "echo >" + note + "; cat " + filepath.Join(dir, "credential")},
	}}
	config.Contexts["x"], config.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}, "x"
	credential, err := json.Marshal(map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": map[string]string{
		"token": rc.BearerToken, "clientCertificateData": string(rc.CertData), "clientKeyData": string(rc.KeyData),
	}})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "credential"), credential, 0o600), clientcmd.WriteToFile(*config, kubeconfig)); err != nil {
		t.Fatal(err)
	}
	c := startChild(t, exec.Command(buildStatic(t), "run", guests+"empty.wasm", "--for", "cm", "--grant-manifest", "--log-format", "json", "--cache-dir", compiledModules,
		"--kubeconfig", kubeconfig, "--socket", socket))
	c.wantLine(`"msg":"the plugin of the kubeconfig can use all files`, `"plugin":"sh"`)
	c.wantLine(`"msg":"reconciled"`)
	if _, err := os.Stat(note); err != nil {
		t.Error(err)
	}
	if out := steer(t, "status", socket); strings.Contains(out, "landlock") {
		t.Errorf("status:\n%s", out)
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}
