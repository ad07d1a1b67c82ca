// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// published is an operator of the module registry, unmodified.
type published struct {
	module, pkg string
	crds        string // a pattern of files
	// main has the arguments of main, as a module and natively. native has further ones for the
	// binary only, which turn off its listeners.
	main, native []string
	env          map[string]string // of both
	size         int64             // the maximum size of the module
	kinds        []schema.GroupVersionResource
	// raced replaces a condition with the error of a run that updated an object after its deletion.
	// If nil, the operator does not store such errors.
	raced map[string]any
	steps []publishedStep
}

// publishedStep is an action of a user, and the objects that show that the operator has
// done its part.
type publishedStep struct {
	what string
	do   func(p *publishedTest)
	done func(all map[string]any) bool
	// again repeats the action as long as the operator itself may have undone it; nil if
	// it never does.
	again func(p *publishedTest)
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

// TestControllerRuntime_APublishedOperatorDoesWhatItsOwnBinaryDoes: operators of the
// module registry, unmodified, run as modules. Their own binaries run on another control
// plane. After each step all objects of both are the same.
func TestControllerRuntime_APublishedOperatorDoesWhatItsOwnBinaryDoes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds operators twice, and starts control planes")
	}
	others := devclustertest.Own(t)
	for _, o := range []published{agentSandbox, solr, rabbitMQ} {
		t.Run(path.Base(o.module), func(t *testing.T) { o.compare(t, devclustertest.Shared(t), others) })
	}
}

// compare runs the module on one control plane, and the binary on the other one.
func (o *published) compare(t *testing.T, c, others *devcluster.Cluster) {
	source := downloadModule(t, o.module)
	binary := filepath.Join(t.TempDir(), "operator")
	runIn(t, source, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./"+o.pkg)
	args := []string{"--sdk", "../../..", "--file", filepath.Join(t.TempDir(), "operator.wasm")}
	for name, value := range o.env {
		args = append(args, "--env", name+"="+value)
	}
	res := build(t, filepath.Join(source, o.pkg), slices.Concat(args, []string{"--"}, o.main)...)
	if res.Size > o.size {
		t.Errorf("the module has %d bytes, want %d at most", res.Size, o.size)
	}
	native, module := o.on(t, others, source), o.on(t, c, source)
	native.child = startNative(t, binary, native.kubeconfig, o.env, append(o.native, o.main...)...)
	module.child = e2e.Run(t, res.File, "--kubeconfig", module.kubeconfig, "--namespace", module.ns, "--socket", "none")
	var want, got map[string]any
	defer func() {
		if t.Failed() {
			t.Logf("objects (-native +module):\n%s", cmp.Diff(want, got))
		}
	}()
	for _, step := range o.steps {
		step.do(native)
		step.do(module)
		module.await(step.what, func() bool {
			if step.again != nil {
				step.again(native)
				step.again(module)
			}
			want, got = native.objects(), module.objects()
			return step.done(want) && reflect.DeepEqual(got, want)
		})
	}
	if failed := module.child.Failures(); len(failed) > 0 {
		t.Errorf("runs failed: %q", failed)
	}
}

// TestControllerRuntime_TheUnitTestsOfAPublishedOperatorPass: with the replace lines,
// natively, unmodified: they use package fake.
func TestControllerRuntime_TheUnitTestsOfAPublishedOperatorPass(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: compiles an operator's tests")
	}
	source := downloadModule(t, agentSandbox.module)
	sdk, err := filepath.Abs("../../../guest-sdk")
	if err != nil {
		t.Fatal(err)
	}
	for module, dir := range map[string]string{
		"sigs.k8s.io/controller-runtime": "controller-runtime", "github.com/wasmctl/wasmctl/guest-sdk/go": "go",
		"k8s.io/kube-openapi": "kube-openapi", "github.com/google/gnostic-models": "gnostic-models",
	} {
		runIn(t, source, "go", "mod", "edit", "-replace", module+"="+filepath.Join(sdk, dir))
	}
	// With -trimpath, the build cache does not depend on the directory, so the next run uses it.
	runIn(t, source, "go", "test", "-trimpath", "-mod=mod", "./controllers/...", "./extensions/controllers/...")
}

// publishedTest is the module or the binary, on its control plane.
type publishedTest struct {
	operatorTest

	kubeconfig string
	kinds      []schema.GroupVersionResource
	raced      map[string]any
}

// on makes the kinds and the namespace of the operator on a control plane.
func (o *published) on(t *testing.T, c *devcluster.Cluster, source string) *publishedTest {
	t.Helper()
	crds, err := filepath.Glob(filepath.Join(source, o.crds))
	if err != nil || len(crds) == 0 {
		t.Fatalf("%s: %v", o.crds, err)
	}
	for _, crd := range crds {
		devclustertest.ApplyFile(t, c, crd)
	}
	ns := strings.NewReplacer("@", "-", ".", "-").Replace(path.Base(o.module))
	devclustertest.Apply(t, c, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+ns+"}\n"))
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &publishedTest{operatorTest{T: t, client: client, ns: ns}, c.Kubeconfig(), o.kinds, o.raced}
}

// objects returns all objects, by kind and name, without values that differ between any two clusters.
func (p *publishedTest) objects() map[string]any {
	p.Helper()
	all := map[string]any{}
	for _, r := range p.kinds {
		list, err := p.of(r).List(p.Context(), metav1.ListOptions{})
		if err != nil {
			p.Fatal(err)
		}
		for i := range list.Items {
			o := list.Items[i].Object
			if list.Items[i].GetName() == "kube-root-ca.crt" {
				continue // the control plane owns it
			}
			// The number of writes to the spec depends on which controller comes first.
			differs(o)
			for _, key := range []string{"resourceVersion", "creationTimestamp", "managedFields", "generation"} {
				unstructured.RemoveNestedField(o, "metadata", key)
			}
			unstructured.RemoveNestedField(o, "spec", "clusterIP")
			unstructured.RemoveNestedField(o, "spec", "clusterIPs")
			chance(list.Items[i])
			conditions, _ := at(o, "status", "conditions").([]any)
			for _, item := range conditions {
				c := item.(map[string]any) //nolint:forcetypeassert // as the API server has it
				delete(c, "lastTransitionTime")
				if c["type"] == p.raced["type"] && c["message"] == e2e.LateUpdate {
					clear(c)
					maps.Copy(c, p.raced)
				}
			}
			all[fmt.Sprint(r.Resource, "/", list.Items[i].GetName())] = o
		}
	}
	return all
}

// differs removes values that differ in any object: uids, also in templates of claims,
// and annotations that are times, also in templates of pods.
func differs(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "uid")
		annotations, _ := v["annotations"].(map[string]any)
		for key, value := range annotations {
			if _, err := time.Parse(time.RFC3339, fmt.Sprint(value)); err == nil {
				annotations[key] = "a time"
			}
		}
		for _, inner := range v {
			differs(inner)
		}
	case []any:
		for _, inner := range v {
			differs(inner)
		}
	}
}

// chance removes values that are random or have the random order of a Go map: the values
// of Secrets except their lengths, and the order of ports.
func chance(o unstructured.Unstructured) {
	ports, _ := at(o.Object, "spec", "ports").([]any)
	slices.SortFunc(ports, func(a, b any) int { return strings.Compare(fmt.Sprint(at(a, "name")), fmt.Sprint(at(b, "name"))) })
	data, _, _ := unstructured.NestedStringMap(o.Object, "data")
	if o.GetKind() != "Secret" || data == nil {
		return
	}
	for key, value := range data {
		data[key] = fmt.Sprint(len(value))
	}
	_ = unstructured.SetNestedStringMap(o.Object, data, "data") // the field exists, so this does not fail
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
func startNative(t *testing.T, binary, kubeconfig string, env map[string]string, args ...string) *e2e.Process {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return e2e.Start(t, cmd)
}
