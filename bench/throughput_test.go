package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
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
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

const (
	objects = 2000 // generators of one round
	rounds  = 4    // of each controller, in turn
	workers = 8    // of each controller
)

var generators = schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "configmapgenerators"}

func TestMain(m *testing.M) { devclustertest.Main(m) }

// BenchmarkThroughput_WasmAgainstNative reconciles the same objects, two API
// writes each, with the example module in wasmctl and with the same logic as a
// native client-go controller, by turns, and reports objects per second from
// the first to the last that was reconciled, and the ratio. The controller is
// started on an empty namespace and then stopped while the objects are created:
// so creating them takes nothing of its time, and they are changes, and not a
// first listing, which wasmctl gives low priority.
func BenchmarkThroughput_WasmAgainstNative(b *testing.B) {
	cluster := devclustertest.Shared(b)
	devclustertest.ApplyFile(b, cluster, "../examples/configmapgenerator/crd.yaml")
	nativeBinary := filepath.Join(b.TempDir(), "native")
	if out, err := exec.Command("go", "build", "-o", nativeBinary, "./native").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	runNative := func(ns string) *exec.Cmd {
		return exec.Command(nativeBinary, "--kubeconfig", cluster.Kubeconfig(), "--namespace", ns, "--workers", fmt.Sprint(workers))
	}
	runWasm := func(ns string) *exec.Cmd {
		return exec.Command("../bin/wasmctl", "run", "../bin/examples/configmapgenerator.wasm",
			"--kubeconfig", cluster.Kubeconfig(), "-n", ns, "--concurrency", fmt.Sprint(workers))
	}
	for b.Loop() {
		var native, wasm float64
		for i := range rounds {
			// The API server slows down as it fills: take turns at going first.
			if i%2 == 0 {
				native += round(b, cluster, runNative)
				wasm += round(b, cluster, runWasm)
			} else {
				wasm += round(b, cluster, runWasm)
				native += round(b, cluster, runNative)
			}
		}
		b.ReportMetric(native/rounds, "native-objects/s")
		b.ReportMetric(wasm/rounds, "wasm-objects/s")
		b.ReportMetric(wasm/native, "wasm/native")
	}
}

// round starts a controller in a namespace of its own, creates the objects
// there, and returns how many it reconciled per second.
func round(b *testing.B, cluster *devcluster.Cluster, command func(namespace string) *exec.Cmd) float64 {
	b.Helper()
	client, err := dynamic.NewForConfig(unlimited(cluster.RESTConfig()))
	if err != nil {
		b.Fatal(err)
	}
	ns := devclustertest.Namespace(b, cluster)
	api := client.Resource(generators).Namespace(ns)
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	w, err := api.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	cmd := command(ns)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	// The first object shows that the controller is up, and is not counted.
	create(b, api, "first", 1)
	measure(b, w, "first", 1)
	signal(b, cmd, syscall.SIGSTOP)
	create(b, api, "g", objects)
	signal(b, cmd, syscall.SIGCONT)
	rate := measure(b, w, "g", objects)
	signal(b, cmd, syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		b.Errorf("%s: %v\n%s", cmd.Path, err, log.String())
	}
	_, runs, _ := strings.Cut(log.String(), "reconciles=")
	b.Logf("%-10s %6.1f objects/s, %s reconciles, user %.2fs, sys %.2fs, peak %d MiB", filepath.Base(cmd.Path), rate, strings.TrimSpace(runs),
		cmd.ProcessState.UserTime().Seconds(), cmd.ProcessState.SystemTime().Seconds(), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss>>10)
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

func unlimited(rc *rest.Config) *rest.Config {
	rc.QPS = -1
	return rc
}
