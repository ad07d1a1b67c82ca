// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// website is the example whose webhooks are tested, and the name of its controller.
const website = "website"

// world is an API server that has Websites.
type world struct {
	cluster    *devcluster.Cluster
	client     dynamic.Interface
	kubeconfig string
	ns         string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	cluster := devclustertest.Own(t) // webhooks are for all namespaces
	devclustertest.ApplyFile(t, cluster, "../../../examples/website/crd.yaml")
	rc := cluster.RESTConfig()
	rc.WarningHandler = rest.NoWarnings{} // v1 is deprecated
	return &world{cluster: cluster, client: dynamic.NewForConfigOrDie(rc), kubeconfig: cluster.Kubeconfig(), ns: devclustertest.Namespace(t, cluster)}
}

// sites returns a client of the Websites in a version.
func (w *world) sites(version string) dynamic.ResourceInterface {
	return w.client.Resource(schema.GroupVersionResource{Group: "examples.wasmctl.dev", Version: version, Resource: "websites"}).Namespace(w.ns)
}

func site(version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "examples.wasmctl.dev/" + version, "kind": "Website", "metadata": map[string]any{"name": name, "labels": map[string]any{"a": "b"}}, "spec": spec,
	}}
}

// try creates a Website in a dry run. A wrong one has a port that TLS does not have.
func (w *world) try(ctx context.Context, wrong bool) (*unstructured.Unstructured, error) {
	spec := map[string]any{"host": "try.example", "tls": true}
	if wrong {
		spec["port"] = int64(80)
	}
	return w.sites("v2").Create(ctx, site("v2", "try", spec), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

const denied = "denied the request: spec.port: 80 is not a port for TLS"

func isDenied(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), denied)
}

// TestWebhooks_OnTheAPIServer: what users see of a module with webhooks, from their registration to the end of the process. While modules are
// swapped, the API server gets a right answer to each request.
func TestWebhooks_OnTheAPIServer(t *testing.T) {
	t.Parallel()
	w, socket, files := newWorld(t), e2e.NewSocket(t), twoModules(t)
	c := e2e.Run(t, files[0], "--name", website, "--grant-manifest", "--webhook-address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0", "--socket", socket, "--probation", "0",
		"--kubeconfig", w.kubeconfig)
	enginetest.Until(t, "a wrong object is denied", func() bool {
		_, err := w.try(t.Context(), true)
		return isDenied(err)
	})
	w.wantDefaults(t)
	w.wantConversion(t)
	w.wantAnswersDuringSwaps(t, func(i int) { e2e.Steer(t, "swap", socket, website, files[(i+1)%2]) })
	if n := e2e.Scraped(t, e2e.Served(t, c, "/metrics")).Sums["wasmctl_admissions_total"]; n == 0 {
		t.Error("wasmctl_admissions_total has counted nothing")
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	if _, err := w.try(t.Context(), true); err != nil {
		t.Errorf("after the process has ended: %v", err)
	}
	for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		left, err := w.client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) > 0 {
			t.Errorf("%s: %v, %v", resource, left, err)
		}
	}
}

// twoModules returns the files of two modules that do the same.
func twoModules(t *testing.T) (files [2]string) {
	t.Helper()
	wasm, dir := e2e.ReadFile(t, e2e.Example(t, website)), t.TempDir()
	for i := range files {
		files[i] = filepath.Join(dir, fmt.Sprint(i, ".wasm"))
		e2e.Replace(t, files[i], append(slices.Clip(wasm), 0, 3, 1, 'x', byte(i))) // a custom section, for another digest
	}
	return files
}

// wantDefaults checks that the module completes objects, also in a dry run, and changes nothing else.
func (w *world) wantDefaults(t *testing.T) {
	t.Helper()
	enginetest.Until(t, "defaults are set", func() bool {
		o, err := w.try(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		port, _, _ := unstructured.NestedInt64(o.Object, "spec", "port")
		theme, _, _ := unstructured.NestedString(o.Object, "spec", "theme")
		if o.GetLabels()["a"] != "b" || len(o.GetManagedFields()) == 0 {
			t.Fatalf("metadata: %v", o.Object["metadata"])
		}
		return port == 443 && theme == "plain"
	})
	if _, err := w.sites("v2").Get(t.Context(), "try", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after dry runs: %v", err)
	}
}

// wantConversion writes objects in one version, and reads them in the other one.
func (w *world) wantConversion(t *testing.T) {
	t.Helper()
	enginetest.Until(t, "the CRD converts", func() bool {
		_, err := w.sites("v1").Create(t.Context(), site("v1", "old", map[string]any{"address": "old.example:81"}), metav1.CreateOptions{})
		return err == nil
	})
	for i := range 20 {
		spec := map[string]any{"host": fmt.Sprintf("h%d.example", i), "port": int64(8000 + i)}
		if _, err := w.sites("v2").Create(t.Context(), site("v2", fmt.Sprint("s", i), spec), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := w.sites("v2").Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if spec := fmt.Sprint(stored.Object["spec"]); spec != "map[host:old.example port:81 theme:plain]" {
		t.Errorf("written in v1: %s", spec)
	}
	list, err := w.sites("v1").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 21 {
		t.Fatalf("%d objects, %v", len(list.Items), err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		want := "old.example:81"
		if n, ok := strings.CutPrefix(o.GetName(), "s"); ok {
			want = fmt.Sprintf("h%s.example:80%02s", n, n)
		}
		if got, _, _ := unstructured.NestedString(o.Object, "spec", "address"); got != want || o.GetAPIVersion() != "examples.wasmctl.dev/v1" {
			t.Errorf("%s in v1: %v", o.GetName(), o.Object)
		}
	}
	if err := w.sites("v1").Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// wantAnswersDuringSwaps sends requests while swap is called repeatedly.
func (w *world) wantAnswersDuringSwaps(t *testing.T, swap func(i int)) {
	t.Helper()
	swaps := 10
	if e2e.All() {
		swaps = 100
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var judged atomic.Int64
	for i := range 4 {
		wg.Go(func() {
			for wrong := i%2 > 0; ctx.Err() == nil; judged.Add(1) {
				if _, err := w.try(ctx, wrong); ctx.Err() == nil && isDenied(err) != wrong {
					t.Errorf("wrong: %t: %v", wrong, err)
				}
			}
		})
	}
	for i := range swaps {
		swap(i)
	}
	stop()
	wg.Wait()
	t.Logf("%d requests during %d swaps", judged.Load(), swaps)
	if judged.Load() < int64(swaps) {
		t.Errorf("only %d requests during %d swaps", judged.Load(), swaps)
	}
}
