package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/guestprocess"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

func needsGuestProcesses(t *testing.T) {
	t.Helper()
	if !guestprocess.Supported {
		t.Skip("SKIPPED: --isolate needs Linux")
	}
}

// TestIsolate_SwapsInEveryWay: a module in a process of its own is swapped, rolled
// back and configured as one without.
func TestIsolate_SwapsInEveryWay(t *testing.T) {
	t.Parallel()
	needsGuestProcesses(t)
	swapInEveryWay(t, "--isolate")
}

// TestIsolate_CanaryAndShadow: so are canary and shadow.
func TestIsolate_CanaryAndShadow(t *testing.T) {
	needsGuestProcesses(t)
	canaryAndShadow(t, "--isolate")
}

// TestIsolate_ExamplesDoWhatTheirReadmesSay: the examples do all of their work in
// processes that have no access to the cluster.
func TestIsolate_ExamplesDoWhatTheirReadmesSay(t *testing.T) {
	needsGuestProcesses(t)
	t.Parallel()
	content, err := os.ReadFile("../../examples/controllers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "controllers.yaml")
	isolated := strings.Replace(string(content), "\ndefaults:\n", "\ndefaults:\n  isolate: controller\n", 1)
	if err := os.WriteFile(file, []byte(isolated), 0o600); err != nil {
		t.Fatal(err)
	}
	runExamples(t, file, true)
}

// guestPID is the process of the only controller's module; 0 where there is none.
func guestPID(t *testing.T, socket string) int {
	t.Helper()
	if p := statusOf(t, socket).Process; p != nil {
		return p.PID
	}
	return 0
}

// TestIsolate_KilledProcessLosesNothing: where a guest process is killed in the
// middle of a run, the object is tried again in another. Without the process that
// has started it, none lives.
func TestIsolate_KilledProcessLosesNothing(t *testing.T) {
	needsGuestProcesses(t)
	ns, kubeconfig := newConfigMaps(t)
	file, socket := filepath.Join(t.TempDir(), "module.wasm"), newSocket(t)
	replace(t, file, enginetest.Worse(enginetest.Spins, 1))
	c := startWasmctl(t, file, "--for", "cm", "-n", ns, "--socket", socket, "--probation", "0", "--timeout", "1h", "--drain-timeout", "1s",
		"--isolate", "--kubeconfig", kubeconfig)
	enginetest.Until(t, "all objects run", func() bool { return statusRunning(t, socket) == 4 })
	before := guestPID(t, socket)
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.wantLine(`"action":"requeue`, "signal: killed") // of any four: the namespace has a ConfigMap of its own too
	enginetest.Until(t, "all objects run again", func() bool {
		pid := guestPID(t, socket)
		return pid != before && pid != 0 && statusRunning(t, socket) == 4
	})
	replace(t, file, enginetest.Worse(enginetest.Good, 2))
	for _, object := range []string{"o0", "o1", "o2", "o3"} {
		c.wantLine(`"msg":"reconciled"`, `"object":"`+ns+"/"+object+`"`, `"revision":2`)
	}
	if out := steer(t, "status", socket); !containsAll(out, []string{"ISOLATED", strconv.Itoa(guestPID(t, socket))}) {
		t.Errorf("status:\n%s", out)
	}
	last := guestPID(t, socket)
	c.signal(syscall.SIGKILL)
	<-c.done
	enginetest.Until(t, "the guest process has ended", func() bool {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(last) + "/stat")
		return err != nil || strings.Contains(string(b), ") Z ")
	})
}

// TestMetrics_MemoryOfAProcessFollowsItsModules: the gauge of a controller rises
// where a module of the standard toolchain, whose instance takes megabytes, comes
// into its process.
func TestMetrics_MemoryOfAProcessFollowsItsModules(t *testing.T) {
	needsGuestProcesses(t)
	t.Parallel()
	const metric, rise = "wasmctl_guest_process_resident_memory_bytes", 4 << 20
	ns, kubeconfig := newConfigMaps(t)
	devclustertest.ApplyFile(t, devclustertest.Shared(t), exampleCRD)
	dir := t.TempDir()
	file := filepath.Join(dir, "controllers.yaml")
	large, err := os.ReadFile(exampleWasm(t, "configmapgenerator"))
	if err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(dir, "large.wasm"), large)
	replace(t, filepath.Join(dir, "small.wasm"), enginetest.Worse(enginetest.Good, 1))
	content := "apiVersion: wasmctl.dev/v1\nkind: Controllers\nprocess: {metricsAddress: \"127.0.0.1:0\", socket: none}\n" +
		"defaults: {grantManifest: true, isolate: class, namespace: [" + ns + "]}\ncontrollers:\n- {name: small, module: small.wasm, for: cm}\n"
	replace(t, file, []byte(content))
	c := startWasmctl(t, "-f", file, "--kubeconfig", kubeconfig)
	url := served(t, c, "/metrics")
	enginetest.Until(t, "the process has memory", func() bool { return scraped(t, url).sums[metric] > 0 })
	small := scraped(t, url).sums[metric]
	replace(t, file, []byte(content+"- {name: large, module: large.wasm}\n"))
	c.wantLine(`"msg":"reconciling"`, `"controller":"large"`)
	enginetest.Until(t, "both say what the process has", func() bool { return scraped(t, url).sums[metric] > 2*(small+rise) })
}

// statusRunning is how many objects the only controller runs, 0 before it is
// there.
func statusRunning(t *testing.T, socket string) int {
	t.Helper()
	if _, err := os.Stat(socket); err != nil {
		return 0
	}
	return statusOf(t, socket).Running
}

// TestIsolate_ClassesOfAFile: controllers of one class share a process, and each
// other has its own.
func TestIsolate_ClassesOfAFile(t *testing.T) {
	needsGuestProcesses(t)
	ns, kubeconfig := newConfigMaps(t)
	dir, socket := t.TempDir(), newSocket(t)
	content := "apiVersion: wasmctl.dev/v1\nkind: Controllers\ncontrollers:\n"
	for name, isolate := range map[string]string{"a": "tenant", "b": "tenant", "c": "controller", "d": "controller", "e": ""} {
		replace(t, filepath.Join(dir, name+".wasm"), enginetest.Worse(enginetest.Good, 1))
		content += "- name: " + name + "\n  module: " + name + ".wasm\n  for: cm\n  namespace: [" + ns + "]\n  grantManifest: true\n"
		if isolate != "" {
			content += "  isolate: " + isolate + "\n"
		}
	}
	file := filepath.Join(dir, "controllers.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c := startWasmctl(t, "-f", file, "--socket", socket, "--kubeconfig", kubeconfig)
	pids := map[string]int{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		c.wantLine(`"msg":"reconciled"`, `"controller":"`+name+`"`)
	}
	for name, st := range controllers(t, socket) {
		if st.Process != nil {
			pids[name] = st.Process.PID
		}
	}
	if pids["a"] == 0 || pids["a"] != pids["b"] || pids["c"] == 0 || pids["c"] == pids["a"] || pids["c"] == pids["d"] || pids["e"] != 0 || len(pids) != 4 {
		t.Errorf("got %v", pids)
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}
