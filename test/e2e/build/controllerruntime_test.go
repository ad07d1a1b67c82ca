// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

var sites = schema.GroupVersionResource{Group: "apps.wasmctl.test", Version: "v1", Resource: "sites"}

// buildOperator builds an operator of guest-sdk/controller-runtime/testdata as wasmctl
// build does: from its files and a go.mod that knows nothing of wasmctl.
func buildOperator(t *testing.T, name string, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS("../../../guest-sdk/controller-runtime/testdata/"+name)); err != nil {
		t.Fatal(err)
	}
	const mod = "module example.com/operator\n\ngo 1.24.0\n\nrequire sigs.k8s.io/controller-runtime v0.22.0\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600); err != nil {
		t.Fatal(err)
	}
	return build(t, dir, append([]string{"--sdk", "../../.."}, args...)...).File
}

// operatorTest is one operator that runs against the control plane.
type operatorTest struct {
	*testing.T
	client dynamic.Interface
	child  *e2e.Process
	ns     string
}

// TestControllerRuntime_AnOrdinaryMainRunsAsAModule: main.go, builder, client and
// recorder of an ordinary operator work on the real control plane: it makes its
// Deployment, follows edits of both, and reports the status.
func TestControllerRuntime_AnOrdinaryMainRunsAsAModule(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds an operator, and starts a control plane")
	}
	module := buildOperator(t, "webapp")
	if info, err := os.Stat(module); err != nil || info.Size() > 28_000_000 {
		t.Errorf("with client-go's whole scheme, package record, metrics and go-cmp the module has %d bytes (%v), want 28,000,000 at most", info.Size(), err)
	}
	c := devclustertest.Shared(t)
	devclustertest.ApplyFile(t, c, "../../../guest-sdk/controller-runtime/testdata/webapp/crd.yaml")
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	o := &operatorTest{T: t, client: client, ns: devclustertest.Namespace(t, c)}
	o.child = e2e.Run(t, module, "--kubeconfig", c.Kubeconfig(), "--namespace", o.ns, "--socket", "none")
	o.create(sites, map[string]any{
		"apiVersion": "apps.wasmctl.test/v1", "kind": "Site", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"image": "nginx:1"},
	})
	image := func() string {
		list, _, _ := unstructured.NestedSlice(o.get(e2e.Deployments).Object, "spec", "template", "spec", "containers")
		if len(list) == 0 {
			return ""
		}
		return list[0].(map[string]any)["image"].(string) //nolint:forcetypeassert // as the API server has it
	}
	o.child.WantLine(`"level":"INFO"`, `"msg":"starting manager"`, `"logger":"setup"`) // the log lines of main have their level
	o.await("the Deployment", func() bool { return image() == "nginx:1" })
	if owner := metav1.GetControllerOf(o.get(e2e.Deployments)); owner == nil || owner.Kind != "Site" || owner.Name != "a" {
		t.Errorf("the owner is %+v", owner)
	}
	o.await("the status", func() bool {
		list, _, _ := unstructured.NestedSlice(o.get(sites).Object, "status", "conditions")
		return len(list) == 1 && strings.Contains(o.child.Text(), "creating a Deployment")
	})
	o.patch(sites, `{"spec":{"image":"nginx:2"}}`)
	o.await("an edit of the Site", func() bool { return image() == "nginx:2" })
	o.patch(e2e.Deployments, `{"spec":{"replicas":7}}`)
	o.await("an edit of the Deployment", func() bool {
		n, _, _ := unstructured.NestedInt64(o.get(e2e.Deployments).Object, "spec", "replicas")
		return n == 1
	})
	uid := o.get(e2e.Deployments).GetUID()
	o.delete(e2e.Deployments)
	o.await("a deletion of the Deployment", func() bool { now := o.get(e2e.Deployments).GetUID(); return now != "" && now != uid })
	o.awaitEvent("created Deployment a")
	if failed := o.child.Failures(); len(failed) > 0 {
		t.Errorf("runs failed: %q", failed)
	}
}

// TestControllerRuntime_AModuleIsEachOfItsControllers: a module with two controllers runs as the
// controller that is named. Its predicates, map functions and indexes work on the real control plane. Its
// runnable is one more controller, which continues at each tick of its clock.
func TestControllerRuntime_AModuleIsEachOfItsControllers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds an operator, and starts a control plane")
	}
	module := buildOperator(t, "several")
	if info, err := os.Stat(module); err != nil || info.Size() > 20_000_000 {
		t.Errorf("with one group the module has %d bytes (%v), want 20,000,000 at most", info.Size(), err)
	}
	c := devclustertest.Shared(t)
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	o := &operatorTest{T: t, client: client, ns: devclustertest.Namespace(t, c)}
	for name, right := range map[string]string{"copies": "resource: configmaps\n      verbs: [get, list, watch]\n", "counts": "resource: secrets\n      verbs: [get, list, watch]\n"} {
		if _, text := e2e.Exec(t, nil, "grant", module, "--name", name, "--kubeconfig", c.Kubeconfig()); !strings.Contains(text, right) {
			t.Errorf("grant of %s: want %q in %s", name, right, text)
		}
	}
	o.create(e2e.Secrets, map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a", "labels": map[string]any{"counts": ""}},
	})
	args := []string{module, "--kubeconfig", c.Kubeconfig(), "--namespace", o.ns, "--socket", "none"}
	counting := e2e.Run(t, append(args, "--controller", "counts", "--name", "mine", "--isolate")...)
	o.child = e2e.Run(t, append(args, "--name", "copies")...)
	o.create(e2e.ConfigMaps, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "annotations": map[string]any{"copy": "b"}},
		"data": map[string]any{"k": "v"},
	})
	beating := e2e.Run(t, module, "--kubeconfig", c.Kubeconfig(), "--socket", "none", "--controller", "runnables", "--name", "beats")
	o.await("the third beat", func() bool {
		n, _ := strconv.Atoi(o.get(e2e.Secrets).GetAnnotations()["beats"])
		return n >= 3
	})
	o.await("the count of one copy", func() bool { return o.get(e2e.Secrets).GetAnnotations()["copies"] == "1" })
	if err := o.of(e2e.ConfigMaps).Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.await("the copy again", func() bool {
		cm, err := o.of(e2e.ConfigMaps).Get(t.Context(), "b", metav1.GetOptions{})
		return err == nil && cm.GetLabels()["several.wasmctl.test/copy"] == "a"
	})
	for _, child := range []*e2e.Process{o.child, counting, beating} {
		if failed := child.Failures(); len(failed) > 0 {
			t.Errorf("runs failed: %q", failed)
		}
	}
}

func (o *operatorTest) of(r schema.GroupVersionResource) dynamic.ResourceInterface {
	return o.client.Resource(r).Namespace(o.ns)
}

func (o *operatorTest) create(r schema.GroupVersionResource, obj map[string]any) {
	o.Helper()
	if _, err := o.of(r).Create(o.Context(), &unstructured.Unstructured{Object: obj}, metav1.CreateOptions{}); err != nil {
		o.Fatal(err)
	}
}

// get reads the object "a", or an empty one if there is none.
func (o *operatorTest) get(r schema.GroupVersionResource) *unstructured.Unstructured {
	o.Helper()
	obj, err := o.of(r).Get(o.Context(), "a", metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return &unstructured.Unstructured{Object: map[string]any{}}
	}
	if err != nil {
		o.Fatal(err)
	}
	return obj
}

func (o *operatorTest) patch(r schema.GroupVersionResource, patch string) {
	o.Helper()
	if _, err := o.of(r).Patch(o.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		o.Fatal(err)
	}
}

func (o *operatorTest) delete(r schema.GroupVersionResource) {
	o.Helper()
	if err := o.of(r).Delete(o.Context(), "a", metav1.DeleteOptions{}); err != nil {
		o.Fatal(err)
	}
}

// await waits until the operator has reached a state.
func (o *operatorTest) await(what string, so func() bool) {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), e2e.SettleLimit)
	defer cancel()
	for !so() {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-o.child.Done:
			o.Fatalf("%s: wasmctl has ended:\n%s", what, o.child.Tail())
		case <-ctx.Done():
			o.Fatalf("%s: did not come:\n%s", what, o.child.Tail())
		}
	}
}

// awaitEvent waits for an event with that note.
func (o *operatorTest) awaitEvent(note string) {
	o.Helper()
	events := schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	o.await("the event", func() bool {
		list, err := o.of(events).List(o.Context(), metav1.ListOptions{})
		if err != nil {
			o.Fatal(err)
		}
		text, err := list.MarshalJSON()
		if err != nil {
			o.Fatal(err)
		}
		return bytes.Contains(text, []byte(note))
	})
}
