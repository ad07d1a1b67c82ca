// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// BenchmarkMemory_Example reports the resident memory of `wasmctl run` with the example at the default concurrency,
// after reconciling one object and after reconciling 1,000.
func BenchmarkMemory_Example(b *testing.B) {
	const n = 1000
	cluster := devclustertest.Shared(b)
	devclustertest.ApplyFile(b, cluster, "../examples/configmapgenerator/crd.yaml")
	for b.Loop() {
		r := start(b, cluster, generator, func(ns string) *exec.Cmd {
			return exec.Command("../bin/wasmctl", "run", "../bin/examples/configmapgenerator.wasm", "--grant-manifest", "--kubeconfig", cluster.Kubeconfig(), "-n", ns)
		})
		b.ReportMetric(resident(b, r.cmd.Process.Pid), "MiB-with-1-object")
		r.create(b, "g", n)
		r.measure(b, "g", n)
		b.ReportMetric(resident(b, r.cmd.Process.Pid), fmt.Sprintf("MiB-with-%d-objects", n))
		r.stop(b)
	}
}

// resident returns the resident memory of a process in MiB.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	return memory(b, pid, "VmRSS")
}

// memory returns the MiB in a line of a process's status.
func memory(b *testing.B, pid int, name string) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, name+": %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	b.Fatal("no " + name)
	return 0
}
