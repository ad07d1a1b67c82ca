// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestKubebuilder_ProjectsDoWhatTheirOwnBinariesDo: the projects of
// examples/kubebuilder are built natively and as modules, from the same files. Both
// do the same on control planes of their own: after each step all objects are equal.
func TestKubebuilder_ProjectsDoWhatTheirOwnBinariesDo(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: -short: builds three operators twice, and starts control planes")
	}
	own := devclustertest.Own(t)
	for name, check := range map[string]func(k *kubebuilder){
		"cronjob": checkCronJob, "memcached": checkMemcached, "multiversion": checkMultiVersion,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &kubebuilder{T: t, dir: "../../../examples/kubebuilder/" + name, binary: filepath.Join(t.TempDir(), name)}
			runIn(t, k.dir, "go", "build", "-ldflags=-s -w", "-o", k.binary, "./cmd")
			res := build(t, k.dir, "--sdk", "../../..", "--env", imageVariable+"=mirror.example/memcached:2", "--file", k.binary+".wasm")
			if res.Size > 21_000_000 {
				t.Errorf("the module has %d bytes, want 21,000,000 at most", res.Size)
			}
			shared := devclustertest.Shared(t)
			ns := devclustertest.Namespace(t, shared)
			devclustertest.Apply(t, own, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+ns+"}\n"))
			for i, c := range []*devcluster.Cluster{own, shared} {
				client, err := dynamic.NewForConfig(c.RESTConfig())
				if err != nil {
					t.Fatal(err)
				}
				k.sides[i] = &side{operatorTest{T: t, client: client, ns: ns}, c}
			}
			check(k)
		})
	}
}

// kubebuilder compares a project as a module with its own binary.
type kubebuilder struct {
	*testing.T

	dir, binary string
	sides       [2]*side // the binary, the module
	hooks       hooks    // of the binary
}

// side is the binary or the module, on its control plane.
type side struct {
	operatorTest

	cluster *devcluster.Cluster
}

// start applies the CRDs, changed for the side with that index, and starts both. If
// webhooks is set, the module registers its webhooks, and the test those of the binary.
func (k *kubebuilder) start(change func(i int, crd string) string, webhooks bool) {
	k.Helper()
	files, err := filepath.Glob(k.dir + "/config/crd/bases/*.yaml")
	if err != nil || len(files) != 1 {
		k.Fatalf("CRDs: %q, %v", files, err)
	}
	crd, err := os.ReadFile(files[0])
	if err != nil {
		k.Fatal(err)
	}
	native, module := k.sides[0], k.sides[1]
	for i, s := range k.sides {
		devclustertest.Apply(k.T, s.cluster, []byte(change(i, string(crd))))
	}
	args := []string{"-health-probe-bind-address=127.0.0.1:0"}
	address := "none"
	if webhooks {
		args = append(args, "-webhook-port="+k.hooks.port, "-webhook-cert-path="+k.hooks.dir)
		address = "127.0.0.1:0"
	}
	cmd := exec.Command(k.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+native.cluster.Kubeconfig(), imageVariable+"=mirror.example/memcached:2")
	native.child = e2e.Start(k.T, cmd)
	module.child = e2e.Run(k.T, k.binary+".wasm", "--kubeconfig", module.cluster.Kubeconfig(), "--socket", "none", "--webhook-address", address)
	if webhooks {
		native.child.WantLine("Serving webhook server")
	}
}

// imageVariable is the environment variable from which memcached takes the image of a
// Deployment.
const imageVariable = "MEMCACHED_IMAGE"

// asItIs changes nothing.
func asItIs(_ int, crd string) string { return crd }

// objects returns all objects of the namespace, without the values that depend on the
// control plane: a uid is replaced by the name of its object.
type objects map[string]map[string]any

// step repeats an action on both sides, and waits until both operators have done their
// part and all objects of these kinds are equal. No run of the module may have failed
// before. In the last step some may, because its objects are deleted during runs.
func (k *kubebuilder) step(what string, kinds []schema.GroupVersionResource, do func(s *side), done func(all objects) bool) {
	k.Helper()
	if failed := k.sides[1].child.Failures(); len(failed) > 0 {
		k.Errorf("runs failed: %q", failed)
	}
	for _, s := range k.sides {
		do(s)
	}
	var want, got objects
	defer func() {
		if k.Failed() {
			k.Logf("%s: native - and module +:\n%s", what, cmp.Diff(want, got))
		}
	}()
	k.sides[1].await(what, func() bool {
		want, got = k.sides[0].objects(kinds), k.sides[1].objects(kinds)
		return done(want) && reflect.DeepEqual(got, want)
	})
}

// objects returns all objects of the namespace, without the values that depend on the
// control plane: a uid is replaced by the name of its object.
func (s *side) objects(kinds []schema.GroupVersionResource) objects {
	s.Helper()
	all, uids := objects{}, map[string]string{}
	for _, r := range kinds {
		list, err := s.of(r).List(s.Context(), metav1.ListOptions{})
		if err != nil {
			s.Fatal(err)
		}
		for i := range list.Items {
			key := fmt.Sprint(r.Version, "/", r.Resource, "/", list.Items[i].GetName())
			all[key], uids[string(list.Items[i].GetUID())] = list.Items[i].Object, "uid of "+list.Items[i].GetName()
		}
	}
	for _, obj := range all {
		anywhere(obj, uids)
	}
	return all
}

// anywhere replaces uids in a value, and removes values that differ on each control
// plane.
func anywhere(v any, uids map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(key string, _ any) bool {
			return slices.Contains([]string{"resourceVersion", "creationTimestamp", "managedFields", "lastTransitionTime"}, key)
		})
		for key, inner := range v {
			if text, ok := inner.(string); ok && uids[text] != "" {
				v[key] = uids[text]
			}
			anywhere(inner, uids)
		}
	case []any:
		for _, inner := range v {
			anywhere(inner, uids)
		}
	}
}

// apply applies objects to the namespace.
func (s *side) apply(manifest string) {
	s.Helper()
	devclustertest.ApplyIn(s.T, s.cluster, s.ns, []byte(manifest))
}

// merge is kubectl patch.
func (s *side) merge(r schema.GroupVersionResource, name, patch string, subresource ...string) {
	s.Helper()
	if _, err := s.of(r).Patch(s.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...); err != nil {
		s.Fatalf("patch %s/%s: %v", r.Resource, name, err)
	}
}

// remove is kubectl delete.
func (s *side) remove(r schema.GroupVersionResource, name string) {
	s.Helper()
	if err := s.of(r).Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatalf("delete %s/%s: %v", r.Resource, name, err)
	}
}

// reads reports whether an object has that value, as text.
func (all objects) reads(key, want string, path ...string) bool {
	value, _, err := unstructured.NestedFieldNoCopy(all[key], path...)
	return err == nil && fmt.Sprint(value) == want
}

// condition reports whether an object has a condition with that reason, for its
// present spec.
func (all objects) condition(key, kind, reason string) bool {
	list, _, _ := unstructured.NestedSlice(all[key], "status", "conditions")
	generation, _, _ := unstructured.NestedInt64(all[key], "metadata", "generation")
	return slices.ContainsFunc(list, func(item any) bool {
		c, ok := item.(map[string]any)
		return ok && c["type"] == kind && c["reason"] == reason && c["observedGeneration"] == generation
	})
}
