package bench

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

var generators = schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "configmapgenerators"}

func TestMain(m *testing.M) { devclustertest.Main(m) }

// comparison is how the two controllers are compared.
type comparison struct {
	objects int           // generators of one round
	rounds  int           // of each controller; even
	workers int           // of each controller
	delay   time.Duration // between controller and API server, each way
}

// BenchmarkThroughput_APIBound compares the example module in wasmctl with the
// same logic as a native client-go controller where the API server is what they
// wait for: 5 ms away, at wasmctl's default concurrency. See compare.
func BenchmarkThroughput_APIBound(b *testing.B) {
	compare(b, comparison{objects: 600, rounds: 4, workers: 4, delay: 5 * time.Millisecond})
}

// BenchmarkThroughput_CPUBound is the same without any distance, so that on a
// small machine API server and controller fight for the CPUs.
func BenchmarkThroughput_CPUBound(b *testing.B) {
	compare(b, comparison{objects: 2000, rounds: 4, workers: 8})
}

// compare lets both controllers reconcile the same objects, two API writes
// each, by turns, and reports objects per second from the first to the last
// that was reconciled, and the median of the rounds' ratios.
//
// The controller is started on an empty namespace and then stopped while the
// objects are created: so creating them takes nothing of its time, and they are
// changes, and not a first listing, which wasmctl gives low priority.
func compare(b *testing.B, c comparison) {
	cluster := devclustertest.Shared(b)
	devclustertest.ApplyFile(b, cluster, "../examples/configmapgenerator/crd.yaml")
	nativeBinary := filepath.Join(b.TempDir(), "native")
	if out, err := exec.Command("go", "build", "-o", nativeBinary, "./native").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	kubeconfig := cluster.Kubeconfig()
	if c.delay > 0 {
		kubeconfig = distant(b, cluster, c.delay)
	}
	runNative := func(ns string) *exec.Cmd {
		return exec.Command(nativeBinary, "--kubeconfig", kubeconfig, "--namespace", ns, "--workers", fmt.Sprint(c.workers))
	}
	runWasm := func(ns string) *exec.Cmd {
		return exec.Command("../bin/wasmctl", "run", "../bin/examples/configmapgenerator.wasm", "--grant-manifest",
			"--kubeconfig", kubeconfig, "-n", ns, "--concurrency", fmt.Sprint(c.workers))
	}
	for b.Loop() {
		var ratios []float64
		var native, wasm float64
		for i := range c.rounds {
			var n, w float64
			// The API server slows down as it fills: take turns at going first.
			if i%2 == 0 {
				n = round(b, cluster, c.objects, runNative)
				w = round(b, cluster, c.objects, runWasm)
			} else {
				w = round(b, cluster, c.objects, runWasm)
				n = round(b, cluster, c.objects, runNative)
			}
			native, wasm, ratios = native+n, wasm+w, append(ratios, w/n)
		}
		slices.Sort(ratios)
		b.ReportMetric(native/float64(c.rounds), "native-objects/s")
		b.ReportMetric(wasm/float64(c.rounds), "wasm-objects/s")
		b.ReportMetric((ratios[c.rounds/2-1]+ratios[c.rounds/2])/2, "wasm/native")
	}
}

// round starts a controller, creates the objects, and returns how many it
// reconciled per second.
func round(b *testing.B, cluster *devcluster.Cluster, objects int, command func(namespace string) *exec.Cmd) float64 {
	b.Helper()
	r := start(b, cluster, command)
	signal(b, r.cmd, syscall.SIGSTOP)
	create(b, r.api, "g", objects)
	signal(b, r.cmd, syscall.SIGCONT)
	rate := measure(b, r.watch, "g", objects)
	r.stop(b)
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

// measure waits until n objects with names of this prefix have a status and
// returns how many got one per second.
func measure(b *testing.B, w watch.Interface, prefix string, n int) float64 {
	b.Helper()
	var first time.Time
	done := map[string]bool{}
	for ev := range w.ResultChan() {
		gen, ok := ev.Object.(*unstructured.Unstructured)
		if !ok || !strings.HasPrefix(gen.GetName(), prefix) {
			continue
		}
		if observed, _, _ := unstructured.NestedInt64(gen.Object, "status", "observedGeneration"); observed == 0 {
			continue
		}
		if first.IsZero() {
			first = time.Now()
		}
		if done[gen.GetName()] = true; len(done) == n {
			return float64(n-1) / time.Since(first).Seconds()
		}
	}
	b.Fatalf("%d of %d objects were reconciled", len(done), n)
	return 0
}

// create creates n objects with names of this prefix.
func create(b *testing.B, api dynamic.ResourceInterface, prefix string, n int) {
	var wg sync.WaitGroup
	numbers := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range numbers {
				_, err := api.Create(b.Context(), &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": generators.GroupVersion().String(), "kind": "ConfigMapGenerator",
					"metadata": map[string]any{"name": fmt.Sprintf("%s%d", prefix, i)}, "spec": map[string]any{"content": fmt.Sprintf("content %d", i)},
				}}, metav1.CreateOptions{})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
}
