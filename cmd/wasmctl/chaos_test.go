package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

var (
	generators = schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: "v1", Resource: "configmapgenerators"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// witness is a module that watches over rule 1: no key is reconciled twice at
// once. It passes everything on to the real one.
type witness struct {
	applier.Module

	mu    sync.Mutex
	busy  map[abi.Key]bool // guarded by mu
	twice []abi.Key        // guarded by mu
	runs  int              // guarded by mu
}

func (w *witness) Acquire(ctx context.Context) (abi.Guest, func(), error) {
	g, release, err := w.Module.Acquire(ctx)
	return &witnessed{g, w}, release, err
}

type witnessed struct {
	abi.Guest
	w *witness
}

func (g *witnessed) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	g.w.begin(req.Key)
	defer g.w.end(req.Key)
	return g.Guest.Reconcile(ctx, req)
}

// hurry shortens what a module's error_policy asks for: the example's minute is
// two seconds here. That a failed run comes back is what the tests are about, not
// when.
const hurry = 30

func (g *witnessed) ErrorPolicy(ctx context.Context, f *abi.Failure) (abi.Result, error) {
	r, err := g.Guest.ErrorPolicy(ctx, f)
	r.Action.After /= hurry
	return r, err
}

func (w *witness) begin(key abi.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[key] {
		w.twice = append(w.twice, key)
	}
	w.busy[key] = true
	w.runs++
}

func (w *witness) end(key abi.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.busy, key)
}

// TestRun_NothingIsLostWhenTheAPIServerDies creates objects while the API
// server is killed with -9 and restarted twice: in the end each has its
// ConfigMap with the right content (rules 2 and 12), and no object was ever
// reconciled twice at once (rule 1).
func TestRun_NothingIsLostWhenTheAPIServerDies(t *testing.T) {
	t.Parallel()
	n := 900
	if testing.Short() {
		n = 150
	}
	cluster := devclustertest.Own(t)
	devclustertest.ApplyFile(t, cluster, "../../examples/configmapgenerator/crd.yaml")
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w := &witness{busy: map[abi.Key]bool{}}
	ended := make(chan error, 1)
	module := exampleWasm(t, "configmapgenerator")
	go func() { ended <- runWitnessed(ctx, cluster, module, w) }()

	third := make(chan int, 3)
	var wg sync.WaitGroup
	wg.Go(func() { createGenerators(ctx, t, client, n, third) })
	for range 2 {
		t.Logf("%d objects created: kill -9", <-third)
		if err := cluster.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	waitForChildren(ctx, t, client, n)
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("%d reconciles of %d objects", w.runs, n)
	if len(w.twice) > 0 {
		t.Errorf("rule 1: reconciled twice at once: %v", w.twice)
	}
}

// runWitnessed is runSession with w between controller and module.
func runWitnessed(ctx context.Context, cluster *devcluster.Cluster, module string, w *witness) error {
	log := slog.New(slog.DiscardHandler)
	p := &process{opts: &processOptions{kubeconfig: cluster.Kubeconfig(), socket: "none", cacheDir: compiledModules}, log: log}
	defer func() { _ = p.close() }() // there is no control plane of its own to stop
	wasm, err := os.ReadFile(module)
	if err != nil {
		return err
	}
	if err := p.connect(ctx); err != nil {
		return err
	}
	s := &session{process: p, opts: &controllerOptions{module: module, concurrency: 8, rights: rightsOptions{grantManifest: true}}, log: log}
	p.want(s.opts).loaded = s
	if err := s.load(ctx, wasm); err != nil {
		return err
	}
	w.Module, s.guests = s.module, w
	return p.run(ctx, nil)
}

func content(i int) string { return fmt.Sprintf("content of %d", i) }

// createGenerators creates n objects, each until the API server has it, and
// tells third after each third of them.
func createGenerators(ctx context.Context, t *testing.T, client dynamic.Interface, n int, third chan<- int) {
	numbers := make(chan int)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range numbers {
				createGenerator(ctx, t, client, i)
			}
		})
	}
	for i := range n {
		if i > 0 && i%(n/3) == 0 {
			third <- i
		}
		numbers <- i
	}
	close(numbers)
	wg.Wait()
}

func createGenerator(ctx context.Context, t *testing.T, client dynamic.Interface, i int) {
	gen := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": generators.GroupVersion().String(), "kind": "ConfigMapGenerator",
		"metadata": map[string]any{"name": fmt.Sprintf("g%d", i)}, "spec": map[string]any{"content": content(i)},
	}}
	for ctx.Err() == nil {
		_, err := client.Resource(generators).Namespace("default").Create(ctx, gen, metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			return
		}
		pause(ctx, 100*time.Millisecond)
	}
	t.Errorf("object %d was not created: %v", i, ctx.Err())
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// waitForChildren waits until each object has its ConfigMap.
func waitForChildren(ctx context.Context, t *testing.T, client dynamic.Interface, n int) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	for {
		missing := 0
		list, err := client.Resource(configMaps).Namespace("default").List(ctx, metav1.ListOptions{})
		if err == nil {
			got := map[string]string{}
			for _, cm := range list.Items {
				got[cm.GetName()], _, _ = unstructured.NestedString(cm.Object, "data", "content")
			}
			for i := range n {
				if got[fmt.Sprintf("g%d", i)] != content(i) {
					missing++
				}
			}
			if missing == 0 {
				return
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("%d of %d objects lack their ConfigMap (%v)", missing, n, err)
		}
		pause(ctx, time.Second)
	}
}
