// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

var generators = schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "configmapgenerators"}

// work is the workload of a comparison.
type work struct {
	resource schema.GroupVersionResource
	kind     string
	spec     func(i int) map[string]any
	// done reports whether an object was reconciled.
	done func(o *unstructured.Unstructured) bool
}

// generator is the workload of the example module.
var generator = work{
	resource: generators, kind: "ConfigMapGenerator",
	spec: func(i int) map[string]any { return map[string]any{"content": fmt.Sprintf("content %d", i)} },
	done: observed1,
}

// observed1 and observed2 report whether the first or the second generation of a generator was reconciled.
func observed1(o *unstructured.Unstructured) bool { return observedGeneration(o) == 1 }
func observed2(o *unstructured.Unstructured) bool { return observedGeneration(o) == 2 }

func observedGeneration(o *unstructured.Unstructured) int64 {
	observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return observed
}

func TestMain(m *testing.M) { devclustertest.Main(m) }

// comparison configures a comparison of two controllers.
type comparison struct {
	work         work
	native, wasm func(kubeconfig, namespace string) *exec.Cmd
	objects      int           // generators of one round
	rounds       int           // rounds of each controller; even
	delay        time.Duration // between controller and API server, each way
}

// BenchmarkThroughput_APIBound compares the example module in wasmctl with the same logic as a native client-go
// controller, limited by the API server: 5 ms away, at wasmctl's default concurrency. See compare.
func BenchmarkThroughput_APIBound(b *testing.B) {
	const workers = 4
	devclustertest.ApplyFile(b, devclustertest.Shared(b), "../examples/configmapgenerator/crd.yaml")
	binary := filepath.Join(b.TempDir(), "native")
	if out, err := exec.Command("go", "build", "-o", binary, "./native").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	c := comparison{work: generator, objects: 600, rounds: 10, delay: 5 * time.Millisecond}
	c.native = func(kubeconfig, ns string) *exec.Cmd {
		return exec.Command(binary, "--kubeconfig", kubeconfig, "--namespace", ns, "--workers", fmt.Sprint(workers))
	}
	c.wasm = func(kubeconfig, ns string) *exec.Cmd {
		return exec.Command("../bin/wasmctl", "run", "../bin/examples/configmapgenerator.wasm", "--grant-manifest",
			"--kubeconfig", kubeconfig, "-n", ns, "--concurrency", fmt.Sprint(workers))
	}
	compare(b, c)
}

// compare makes both controllers reconcile the same objects in turns, with two API writes each, and reports objects per
// second from the first to the last reconcile, and the median of the rounds' ratios.
//
// The controller is started in an empty namespace and then stopped while the objects are created. This way, creating
// them takes none of its time, and they are changes, and not a first listing, to which wasmctl gives low priority.
func compare(b *testing.B, c comparison) {
	cluster := devclustertest.Shared(b)
	kubeconfig := cluster.Kubeconfig()
	if c.delay > 0 {
		kubeconfig = distant(b, cluster, c.delay)
	}
	runNative := func(ns string) *exec.Cmd { return c.native(kubeconfig, ns) }
	runWasm := func(ns string) *exec.Cmd { return c.wasm(kubeconfig, ns) }
	for b.Loop() {
		var ratios []float64
		var native, wasm float64
		for i := range c.rounds {
			var n, w float64
			// The API server slows down as it fills: alternate the first one.
			if i%2 == 0 {
				n = round(b, cluster, c.work, c.objects, runNative)
				w = round(b, cluster, c.work, c.objects, runWasm)
			} else {
				w = round(b, cluster, c.work, c.objects, runWasm)
				n = round(b, cluster, c.work, c.objects, runNative)
			}
			native, wasm, ratios = native+n, wasm+w, append(ratios, w/n)
		}
		slices.Sort(ratios)
		b.Logf("wasm/native: %.3f", ratios)
		b.ReportMetric(native/float64(c.rounds), "native-objects/s")
		b.ReportMetric(wasm/float64(c.rounds), "wasm-objects/s")
		b.ReportMetric((ratios[c.rounds/2-1]+ratios[c.rounds/2])/2, "wasm/native")
	}
}

// round starts a controller, creates the objects, and returns how many it reconciled per second.
func round(b *testing.B, cluster *devcluster.Cluster, w work, objects int, command func(namespace string) *exec.Cmd) float64 {
	b.Helper()
	r := start(b, cluster, w, command)
	signal(b, r.cmd, syscall.SIGSTOP)
	r.create(b, "g", objects)
	signal(b, r.cmd, syscall.SIGCONT)
	rate := r.measure(b, "g", objects)
	r.stop(b)
	r.clean(b)
	_, runs, _ := strings.Cut(r.log.String(), "reconciles=")
	runs, _, _ = strings.Cut(strings.TrimSpace(runs), " ")
	state := r.cmd.ProcessState
	b.Logf("%-10s %6.1f objects/s, %s reconciles, user %.2fs, sys %.2fs, peak %d MiB", filepath.Base(r.cmd.Path), rate, runs,
		state.UserTime().Seconds(), state.SystemTime().Seconds(), state.SysUsage().(*syscall.Rusage).Maxrss>>10)
	return rate
}

func signal(b *testing.B, cmd *exec.Cmd, sig syscall.Signal) {
	b.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		b.Fatal(err)
	}
}
