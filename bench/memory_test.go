package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// BenchmarkMemory_Example reports the resident memory of `wasmctl run` with the
// example and 1,000 objects, each reconciled, at the default concurrency; and
// before there are objects.
func BenchmarkMemory_Example(b *testing.B) {
	const n = 1000
	cluster := devclustertest.Shared(b)
	devclustertest.ApplyFile(b, cluster, "../examples/configmapgenerator/crd.yaml")
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ns := devclustertest.Namespace(b, cluster)
		api := client.Resource(generators).Namespace(ns)
		ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
		w, err := api.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			b.Fatal(err)
		}
		var log bytes.Buffer
		cmd := exec.Command("../bin/wasmctl", "run", "../bin/examples/configmapgenerator.wasm", "--kubeconfig", cluster.Kubeconfig(), "-n", ns)
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		create(b, api, "first", 1)
		measure(b, w, "first", 1)
		b.ReportMetric(resident(b, cmd.Process.Pid), "MiB-with-1-object")
		create(b, api, "g", n)
		measure(b, w, "g", n)
		b.ReportMetric(resident(b, cmd.Process.Pid), fmt.Sprintf("MiB-with-%d-objects", n))
		signal(b, cmd, syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			b.Errorf("%v\n%s", err, log.String())
		}
		w.Stop()
		cancel()
	}
}

// resident returns the resident memory of a process in MiB.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	b.Fatal("no VmRSS")
	return 0
}
