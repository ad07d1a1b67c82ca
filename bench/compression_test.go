// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// undisturbed is how long a process is idle, so that it has compressed its objects, and the Go runtime has collected
// garbage.
const undisturbed = 150 * time.Second

// BenchmarkCompression reports the savings and the cost of --cache-compression: with 10,000 pods of 13 KB of JSON, half
// of which is managedFields, and with 60,000 ConfigMaps of 2.5 KB. Heap is the heap that remains after garbage
// collection.
func BenchmarkCompression(b *testing.B) {
	onlyNamed(b, "Compression")
	cluster := devclustertest.Shared(b)
	for _, w := range []struct {
		gvr    schema.GroupVersionResource
		n      int
		object func(i int) map[string]any
	}{
		{pods, 10_000, largePod},
		{configMaps, 60_000, func(i int) map[string]any {
			object := smallConfigMap(i)
			object["data"] = map[string]any{"config.yaml": strings.Repeat(settings(i), 7)}
			return object
		}},
	} {
		ns := populate(b, cluster, w.gvr, w.n, w.object)
		for _, value := range []string{"off", "on"} {
			c := contender{value, func(j job, metrics string) *exec.Cmd {
				return wasmctlCommand(j, metrics, "../bin/examples/benchguest.rust.wasm", "--grant-manifest", "--for", j.resource, "--cache-compression", value)
			}}
			b.Run(w.gvr.Resource+"/"+value, func(b *testing.B) {
				for b.Loop() {
					compression(b, c.observe(b, job{kubeconfig: cluster.Kubeconfig(), namespace: ns, resource: w.gvr.Resource}), w.n)
				}
			})
		}
	}
}

// compression measures one process from start to end.
func compression(b *testing.B, o *observed, n int) {
	b.Helper()
	s := o.awaitReconciles(b, n)
	start := o.cpu(b)
	peak, high := s.heapPeak, memory(b, o.cmd.Process.Pid, "VmHWM")
	<-time.After(undisturbed)
	steady, rests := o.get().heap, resident(b, o.cmd.Process.Pid)
	done := n
	resync := func(times int) (perRun time.Duration) {
		cpu := o.cpu(b)
		for range times {
			done += n
			signal(b, o.cmd, syscall.SIGUSR1)
			o.awaitReconciles(b, done)
		}
		return (o.cpu(b) - cpu) / time.Duration(times*n)
	}
	first, later := resync(1), resync(5)
	o.stop(b)
	for unit, value := range map[string]float64{
		"s-CPU-of-start": start.Seconds(), "µs-CPU-of-a-first-run": float64(first.Nanoseconds()) / 1000, "µs-CPU-of-a-run": float64(later.Nanoseconds()) / 1000,
		"MiB-heap-at-start": peak, "MiB-heap": steady,
		"MiB-resident-at-start": high, "MiB-resident": rests,
	} {
		b.ReportMetric(value, unit)
	}
}
