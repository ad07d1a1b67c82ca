// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// withoutPolicy returns a module without its error_policy. The tests need failed runs to
// be retried by the back-off of the host, and not after the minute of the example's
// policy.
func withoutPolicy(t *testing.T, file string) wasmctl.Module {
	t.Helper()
	module, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return wasmctl.Bytes(bytes.ReplaceAll(module, []byte(abi.ExportErrorPolicy), []byte("other_policy")))
}

// inProcess is a Runtime in this process, and its log.
type inProcess struct {
	*wasmctl.Runtime

	log e2e.Buffer
}

func newInProcess(config *rest.Config, o wasmctl.Options) (p *inProcess, err error) {
	p = &inProcess{}
	o.Logger = slog.New(slog.NewJSONHandler(&p.log, nil))
	o.CacheDir, o.CacheKey = filepath.Join(e2e.BuiltDir, "compiled-in-process"), []byte("the tests'")
	p.Runtime, err = wasmctl.New(config, o)
	return p, err
}

// TestRun_NothingIsLostWhenTheAPIServerDies creates objects while the API
// server is killed with -9 and restarted twice: in the end each has its
// ConfigMap with the right content (rules 2 and 12), and no object was ever
// reconciled twice at once (rule 1).
func TestRun_NothingIsLostWhenTheAPIServerDies(t *testing.T) {
	t.Parallel()
	n := 300
	if e2e.All() {
		n = 900
	}
	cluster := devclustertest.Own(t)
	devclustertest.ApplyFile(t, cluster, "../../../examples/configmapgenerator/crd.yaml")
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	p, err := newInProcess(cluster.RESTConfig(), wasmctl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	module := withoutPolicy(t, e2e.Example(t, "configmapgenerator"))
	if _, err := p.Load(ctx, module, wasmctl.ControllerOptions{ControllerSpec: v1alpha1.ControllerSpec{CommonSpec: v1alpha1.CommonSpec{
		Concurrency: new(int32(8)), Grant: &v1alpha1.Grant{Manifest: true},
	}}}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()

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
	runs := e2e.ParseReconciles(p.log.String())
	t.Logf("%d reconciles of %d objects", len(runs), n)
	e2e.WantNoneTwice(t, runs)
}

func content(i int) string { return fmt.Sprintf("content of %d", i) }

// createGenerators creates n objects, each until the API server has accepted it, and
// sends on third after each third of them.
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
		"apiVersion": e2e.Generators.GroupVersion().String(), "kind": "ConfigMapGenerator",
		"metadata": map[string]any{"name": fmt.Sprintf("g%d", i)}, "spec": map[string]any{"content": content(i)},
	}}
	for ctx.Err() == nil {
		_, err := client.Resource(e2e.Generators).Namespace("default").Create(ctx, gen, metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			return
		}
		e2e.Pause(ctx, 100*time.Millisecond)
	}
	t.Errorf("object %d was not created: %v", i, ctx.Err())
}

// waitForChildren waits until each object has its ConfigMap.
func waitForChildren(ctx context.Context, t *testing.T, client dynamic.Interface, n int) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	for {
		missing := 0
		list, err := client.Resource(e2e.ConfigMaps).Namespace("default").List(ctx, metav1.ListOptions{})
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
		e2e.Pause(ctx, time.Second)
	}
}
