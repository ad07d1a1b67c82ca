// SPDX-License-Identifier: Apache-2.0

package swap_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestIsolate_SwapsInEveryWay: a module in a process of its own is swapped, rolled back
// and configured like any other.
func TestIsolate_SwapsInEveryWay(t *testing.T) {
	t.Parallel()
	e2e.NeedsGuestProcesses(t)
	swapInEveryWay(t, "--isolate")
}

// TestIsolate_CanaryAndShadow: canary and shadow also work for a module in a process of its own.
func TestIsolate_CanaryAndShadow(t *testing.T) {
	e2e.NeedsGuestProcesses(t)
	canaryAndShadow(t, "--isolate")
}

// guestPID returns the ID of the process of the only module; 0 if there is none.
func guestPID(t *testing.T, socket string) int {
	t.Helper()
	if p := e2e.StatusOf(t, socket).Process; p != nil {
		return p.PID
	}
	return 0
}

// TestIsolate_KilledProcessLosesNothing: if a guest process is killed in the middle of a
// run, the object is retried in another one. A guest process ends with the process that
// started it.
func TestIsolate_KilledProcessLosesNothing(t *testing.T) {
	e2e.NeedsGuestProcesses(t)
	ns, kubeconfig := e2e.NewConfigMaps(t)
	file, socket := filepath.Join(t.TempDir(), "module.wasm"), e2e.NewSocket(t)
	e2e.Replace(t, file, enginetest.Worse(enginetest.Spins, 1))
	c := e2e.Run(t, file, "--for", "cm", "-n", ns, "--socket", socket, "--probation", "0", "--timeout", "1h", "--drain-timeout", "1s",
		"--isolate", "--kubeconfig", kubeconfig)
	enginetest.Until(t, "all objects run", func() bool { return statusRunning(t, socket) == 4 })
	before := guestPID(t, socket)
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.WantLine(`"action":"requeue`, "signal: killed") // of any object: the namespace also has a ConfigMap of its own
	enginetest.Until(t, "all objects run again", func() bool {
		pid := guestPID(t, socket)
		return pid != before && pid != 0 && statusRunning(t, socket) == 4
	})
	e2e.Replace(t, file, enginetest.Worse(enginetest.Good, 2))
	for _, object := range []string{"o0", "o1", "o2", "o3"} {
		c.WantLine(`"msg":"reconciled"`, `"object":"`+ns+"/"+object+`"`, `"revision":2`)
	}
	if out := e2e.Steer(t, "status", socket); !e2e.ContainsAll(out, []string{"ISOLATED", strconv.Itoa(guestPID(t, socket))}) {
		t.Errorf("status:\n%s", out)
	}
	last := guestPID(t, socket)
	c.Signal(syscall.SIGKILL)
	<-c.Done
	enginetest.Until(t, "the guest process has ended", func() bool {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(last) + "/stat")
		return err != nil || strings.Contains(string(b), ") Z ")
	})
}

// TestMetrics_MemoryOfAProcessFollowsItsModules: the gauge of a controller rises when a
// module of the standard toolchain, whose instance takes megabytes, is loaded in its
// process.
func TestMetrics_MemoryOfAProcessFollowsItsModules(t *testing.T) {
	e2e.NeedsGuestProcesses(t)
	t.Parallel()
	const metric, rise = "wasmctl_guest_process_resident_memory_bytes", 4 << 20
	ns, kubeconfig := e2e.NewConfigMaps(t)
	devclustertest.ApplyFile(t, devclustertest.Shared(t), e2e.GeneratorCRD)
	dir := t.TempDir()
	file := filepath.Join(dir, "controllers.yaml")
	large, err := os.ReadFile(e2e.Example(t, "configmapgenerator"))
	if err != nil {
		t.Fatal(err)
	}
	e2e.Replace(t, filepath.Join(dir, "large.wasm"), large)
	e2e.Replace(t, filepath.Join(dir, "small.wasm"), enginetest.Worse(enginetest.Good, 1))
	content := "apiVersion: wasmctl.dev/v1\nkind: Controllers\nprocess: {metricsAddress: \"127.0.0.1:0\", socket: none}\n" +
		"defaults: {grant: {manifest: true}, isolate: class, namespaces: [" + ns + "]}\ncontrollers:\n- {name: small, module: small.wasm, for: cm}\n"
	e2e.Replace(t, file, []byte(content))
	c := e2e.Run(t, "-f", file, "--kubeconfig", kubeconfig)
	url := e2e.Served(t, c, "/metrics")
	enginetest.Until(t, "the process has memory", func() bool { return e2e.Scraped(t, url).Sums[metric] > 0 })
	small := e2e.Scraped(t, url).Sums[metric]
	e2e.Replace(t, file, []byte(content+"- {name: large, module: large.wasm}\n"))
	c.WantLine(`"msg":"reconciling"`, `"controller":"large"`)
	enginetest.Until(t, "both say what the process has", func() bool { return e2e.Scraped(t, url).Sums[metric] > 2*(small+rise) })
}

// statusRunning returns the number of running reconciles of the only controller; 0 until
// it exists.
func statusRunning(t *testing.T, socket string) int {
	t.Helper()
	if _, err := os.Stat(socket); err != nil {
		return 0
	}
	return e2e.StatusOf(t, socket).Running
}

// TestIsolate_ClassesOfAFile: controllers of one class share a process, and each other
// controller has its own.
func TestIsolate_ClassesOfAFile(t *testing.T) {
	e2e.NeedsGuestProcesses(t)
	ns, kubeconfig := e2e.NewConfigMaps(t)
	dir, socket := t.TempDir(), e2e.NewSocket(t)
	content := "apiVersion: wasmctl.dev/v1\nkind: Controllers\ncontrollers:\n"
	for name, isolate := range map[string]string{"a": "tenant", "b": "tenant", "c": "controller", "d": "controller", "e": ""} {
		e2e.Replace(t, filepath.Join(dir, name+".wasm"), enginetest.Worse(enginetest.Good, 1))
		content += "- name: " + name + "\n  module: " + name + ".wasm\n  for: cm\n  namespaces: [" + ns + "]\n  grant: {manifest: true}\n"
		if isolate != "" {
			content += "  isolate: " + isolate + "\n"
		}
	}
	file := filepath.Join(dir, "controllers.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c := e2e.Run(t, "-f", file, "--socket", socket, "--kubeconfig", kubeconfig)
	pids := map[string]int{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		c.WantLine(`"msg":"reconciled"`, `"controller":"`+name+`"`)
	}
	for name, st := range e2e.ControllersOf(t, socket) {
		if st.Process != nil {
			pids[name] = st.Process.PID
		}
	}
	if pids["a"] == 0 || pids["a"] != pids["b"] || pids["c"] == 0 || pids["c"] == pids["a"] || pids["c"] == pids["d"] || pids["e"] != 0 || len(pids) != 4 {
		t.Errorf("got %v", pids)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
