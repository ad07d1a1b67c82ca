// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestRun_GivesUpWhatItDoesNotNeed: each thread has the filter, and wasmctl status
// reports it.
func TestRun_GivesUpWhatItDoesNotNeed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux has seccomp")
	}
	kubeconfig := devclustertest.Shared(t).Kubeconfig()
	for mode, want := range map[string]string{"auto": "2", "off": "0"} {
		socket := e2e.NewSocket(t)
		c := e2e.Run(t, e2e.Guests+"empty.wasm", "--for", "cm", "--kubeconfig", kubeconfig, "--socket", socket, "--harden", mode)
		c.WantLine(`"msg":"reconciled"`)
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", c.Cmd.Process.Pid))
		if len(threads) == 0 {
			t.Error("no threads")
		}
		for _, path := range threads {
			status, err := os.ReadFile(path) //nolint:gosec // of /proc
			if err == nil && !strings.Contains(string(status), "Seccomp:\t"+want+"\n") {
				t.Errorf("--harden %s: %s:\n%s", mode, path, status)
			}
		}
		if out := e2e.Steer(t, "status", socket); strings.Contains(out, "hardening: not dumpable, no_new_privs, seccomp") != (mode == "auto") || strings.Contains(out, "landlock") != (mode == "auto") {
			t.Errorf("--harden %s: status:\n%s", mode, out)
		}
		c.Signal(syscall.SIGTERM)
		c.WantExit(e2e.ExitOK)
	}
}

// needsStatic skips a test if wasmctl is built with cgo, as the race detector needs it:
// Landlock needs a binary without.
func needsStatic(t *testing.T) {
	t.Helper()
	path, err := exec.LookPath("wasmctl")
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"}) {
		t.Skip("SKIPPED: wasmctl is built with cgo: there is no Landlock")
	}
}

// TestRun_WritesItsOwnFilesOnly: with all of the hardening, a process does all of its
// work: it fills the cache, saves its state, writes its audit, serves its socket,
// follows its files and starts processes that compile and run modules. It cannot write
// elsewhere.
func TestRun_WritesItsOwnFilesOnly(t *testing.T) {
	needsStatic(t)
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux has Landlock")
	}
	ns, kubeconfig := e2e.NewConfigMaps(t)
	dir, run := t.TempDir(), filepath.Dir(e2e.NewSocket(t))
	for _, name := range []string{"home", "tmp", "audit", "elsewhere"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	one, two := filepath.Join(dir, "one.wasm"), filepath.Join(dir, "two.wasm")
	e2e.Replace(t, one, enginetest.Worse(enginetest.Good, 1))
	e2e.Replace(t, two, enginetest.Worse(enginetest.Good, 2))
	file := filepath.Join(dir, "controllers.yaml")
	write := func(controllers ...string) {
		e2e.Replace(t, file, []byte("apiVersion: wasmctl.dev/v1\nkind: Controllers\ndefaults: {for: cm, namespaces: "+ns+", rollout: {probation: 0s}}\ncontrollers:\n"+
			strings.Join(controllers, "\n")+"\n"))
	}
	const first = "- {name: one, module: one.wasm, auditFile: audit/one.yaml}"
	const second = "- {name: two, module: two.wasm, grant: {manifest: true}, isolate: controller}"
	write(first)
	cmd := exec.Command("wasmctl", "run", "-f", file, "--log-format", "json", "--kubeconfig", kubeconfig, "--state-dir", filepath.Join(dir, "state"), "--harden", "required")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "home"), "TMPDIR="+filepath.Join(dir, "tmp"), "XDG_RUNTIME_DIR="+run, "XDG_CACHE_HOME=", "XDG_CONFIG_HOME=")
	c := e2e.Start(t, cmd)
	c.WantLine(`"msg":"reconciled"`, `"controller":"one"`, ns+"/o0")
	socket := filepath.Join(run, "wasmctl", strconv.Itoa(cmd.Process.Pid)+".sock")
	enginetest.Until(t, "the socket is there", func() bool { _, err := os.Stat(socket); return err == nil })
	if out := e2e.Steer(t, "status", socket); !strings.Contains(out, "hardening: not dumpable, no_new_privs, seccomp, landlock v") {
		t.Errorf("status:\n%s", out)
	}
	write(first, second)
	c.WantLine(`"msg":"reconciled"`, `"controller":"two"`, ns+"/o0")
	guest := e2e.ChildOf(t, cmd.Process.Pid, "guests-for-run")
	if score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", guest)); err != nil || string(score) != "1000\n" {
		t.Errorf("the oom_score_adj of the guest process is %q, %v", score, err)
	}
	e2e.Replace(t, one, enginetest.Worse(enginetest.Good, 3))
	c.WantLine(`"msg":"module swapped"`, `"why":"module file changed"`, `"controller":"one"`)
	if out := e2e.Steer(t, "swap", socket, "two", one, "--wait"); !strings.Contains(out, "is live") {
		t.Errorf("swap: %s", out)
	}
	for _, pattern := range []string{"home/.cache/wasmctl/modules/*", "home/.config/wasmctl/cache.key", "state/*", "audit/one.yaml"} {
		if found, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(found) == 0 {
			t.Errorf("no %s: %v", pattern, err)
		}
	}
	if text := c.Text(); strings.Contains(text, "denied") || strings.Contains(text, `"level":"ERROR"`) || strings.Contains(text, `"level":"WARN"`) {
		t.Errorf("log:\n%s", text)
	}
	write(first, second, "- {name: three, module: two.wasm, auditFile: elsewhere/three.yaml}")
	c.WantLine("cannot be written", "permission denied")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	left, _ := filepath.Glob(filepath.Join(dir, "tmp", "*"))
	if _, err := os.Stat(socket); err == nil || len(left) > 0 {
		t.Errorf("left: socket: %v, %q", err, left)
	}
}

// TestRun_PluginOfTheKubeconfigKeepsItsFiles: the plugin may write any file and start
// any program.
func TestRun_PluginOfTheKubeconfigKeepsItsFiles(t *testing.T) {
	needsStatic(t)
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux has Landlock")
	}
	rc := devclustertest.Shared(t).RESTConfig()
	dir, socket := t.TempDir(), e2e.NewSocket(t)
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
	c := e2e.Start(t, exec.Command("wasmctl", "run", e2e.Guests+"empty.wasm", "--for", "cm", "--grant-manifest", "--log-format", "json", "--cache-dir", e2e.CodeDir,
		"--kubeconfig", kubeconfig, "--socket", socket))
	c.WantLine(`"msg":"the plugin of the kubeconfig can use all files`, `"plugin":"sh"`)
	c.WantLine(`"msg":"reconciled"`)
	if _, err := os.Stat(note); err != nil {
		t.Error(err)
	}
	if out := e2e.Steer(t, "status", socket); strings.Contains(out, "landlock") {
		t.Errorf("status:\n%s", out)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
