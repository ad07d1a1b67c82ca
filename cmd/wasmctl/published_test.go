package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// An operator as it was published: nothing of it is changed.
const (
	publishedModule  = "sigs.k8s.io/agent-sandbox@v0.1.0"
	publishedPackage = "cmd/agent-sandbox-controller"
	publishedNS      = "published"
)

var (
	sandboxes = schema.GroupVersionResource{Group: "agents.x-k8s.io", Version: "v1alpha1", Resource: "sandboxes"}
	// ofSandboxes are the kinds of a Sandbox and of what is made for it.
	ofSandboxes = []schema.GroupVersionResource{
		sandboxes,
		{Version: "v1", Resource: "pods"},
		{Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "persistentvolumeclaims"},
	}
)

// TestControllerRuntime_APublishedOperatorDoesWhatItsOwnBinaryDoes: an operator of
// the module registry, unmodified, runs as a module. Its own binary runs on another
// control plane. After each step all objects of both are the same.
func TestControllerRuntime_APublishedOperatorDoesWhatItsOwnBinaryDoes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds an operator twice, and starts control planes")
	}
	source := downloadModule(t, publishedModule)
	binary := filepath.Join(t.TempDir(), "operator")
	runIn(t, source, "go", "build", "-o", binary, "./"+publishedPackage)
	res, err := project.Build(t.Context(), filepath.Join(source, publishedPackage), project.Options{
		SDK: "../..", Output: filepath.Join(t.TempDir(), "operator.wasm"), Stderr: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Size > 26_000_000 {
		t.Errorf("the module has %d bytes, want 26,000,000 at most", res.Size)
	}
	crd := filepath.Join(source, "k8s/crds/agents.x-k8s.io_sandboxes.yaml")
	native := publishedOn(t, devclustertest.Own(t), crd)
	shared := devclustertest.Shared(t)
	o := publishedOn(t, shared, crd)
	native.child = startNative(t, binary, native.kubeconfig)
	o.child = startWasmctl(t, res.File, "--kubeconfig", o.kubeconfig, "--socket", "none")
	for _, step := range []struct {
		what string
		do   func(p *publishedTest)
		done func(all map[string]any) bool
	}{
		{"a Sandbox", (*publishedTest).createSandbox, func(all map[string]any) bool { return len(all) == 4 }},
		{"no replicas", func(p *publishedTest) { p.patch(sandboxes, `{"spec":{"replicas":0}}`) }, func(all map[string]any) bool { return all["pods/a"] == nil }},
		{"a replica again", func(p *publishedTest) { p.patch(sandboxes, `{"spec":{"replicas":1}}`) }, func(all map[string]any) bool { return all["pods/a"] != nil }},
		{"a deleted Service", func(p *publishedTest) { p.delete(ofSandboxes[2]) }, func(all map[string]any) bool { return all["services/a"] != nil }},
		{"a time that is over", func(p *publishedTest) { p.patch(sandboxes, `{"spec":{"shutdownTime":"2020-01-01T00:00:00Z"}}`) }, func(all map[string]any) bool { return all["pods/a"] == nil && all["services/a"] == nil }},
	} {
		step.do(native)
		step.do(o)
		var want, got map[string]any
		o.await(step.what, func() bool {
			want, got = native.objects(), o.objects()
			return step.done(want) && reflect.DeepEqual(got, want)
		})
	}
	if failed := o.child.failures(); len(failed) > 0 {
		t.Errorf("runs failed: %q", failed)
	}
}

// publishedTest is one of both, on its control plane.
type publishedTest struct {
	operatorTest

	kubeconfig string
}

func publishedOn(t *testing.T, c *devcluster.Cluster, crd string) *publishedTest {
	t.Helper()
	devclustertest.ApplyFile(t, c, crd)
	devclustertest.Apply(t, c, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+publishedNS+"}\n"))
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &publishedTest{operatorTest{T: t, client: client, ns: publishedNS}, c.Kubeconfig()}
}

func (p *publishedTest) createSandbox() {
	p.create(sandboxes, map[string]any{
		"apiVersion": "agents.x-k8s.io/v1alpha1", "kind": "Sandbox", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{
			"podTemplate": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"tier": "test"}},
				"spec": map[string]any{
					"automountServiceAccountToken": false, // its volume has a random name
					"containers":                   []any{map[string]any{"name": "main", "image": "busybox"}},
				},
			},
			"volumeClaimTemplates": []any{map[string]any{
				"metadata": map[string]any{"name": "data"},
				"spec": map[string]any{
					"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
				},
			}},
		},
	})
}

// objects returns all objects, by kind and name, without what no two clusters
// have the same.
func (p *publishedTest) objects() map[string]any {
	p.Helper()
	all := map[string]any{}
	for _, r := range ofSandboxes {
		list, err := p.of(r).List(p.Context(), metav1.ListOptions{})
		if err != nil {
			p.Fatal(err)
		}
		for i := range list.Items {
			o := list.Items[i].Object
			for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
				unstructured.RemoveNestedField(o, "metadata", key)
			}
			unstructured.RemoveNestedField(o, "spec", "clusterIP")
			unstructured.RemoveNestedField(o, "spec", "clusterIPs")
			without(o, []string{"metadata", "ownerReferences"}, "uid")
			without(o, []string{"status", "conditions"}, "lastTransitionTime")
			all[fmt.Sprint(r.Resource, "/", list.Items[i].GetName())] = o
		}
	}
	return all
}

// without removes a key from each item of a list.
func without(o map[string]any, path []string, key string) {
	list, _, _ := unstructured.NestedSlice(o, path...)
	for _, item := range list {
		delete(item.(map[string]any), key) //nolint:forcetypeassert // as the API server has it
	}
	if list != nil {
		_ = unstructured.SetNestedSlice(o, list, path...) // it was there
	}
}

// downloadModule returns a copy of a module's sources.
func downloadModule(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module).Output()
	if err != nil {
		t.Skipf("SKIPPED: %s cannot be downloaded: %v: %s", module, err, out)
	}
	var at struct{ Dir string }
	if err := json.Unmarshal(out, &at); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "source")
	if err := os.CopyFS(dir, os.DirFS(at.Dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func runIn(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// startNative starts the operator's own binary.
func startNative(t *testing.T, binary, kubeconfig string) *child {
	t.Helper()
	cmd := exec.Command(binary, "-health-probe-bind-address=127.0.0.1:0")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	return startChild(t, cmd)
}
