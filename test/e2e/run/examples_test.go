// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// scenario follows the README of an example, and checks the results.
type scenario struct {
	t       *testing.T
	cluster *devcluster.Cluster
	client  dynamic.Interface
}

// ref names an object as GROUP/VERSION/RESOURCE and NAMESPACE/NAME; the core group and
// the namespace of a cluster-scoped object are left out.
type ref struct{ resource, name string }

func (l *scenario) objects(r ref) (dynamic.ResourceInterface, string) {
	l.t.Helper()
	parts := strings.Split(r.resource, "/")
	gvr := schema.GroupVersionResource{Version: parts[0], Resource: parts[len(parts)-1]}
	if len(parts) == 3 {
		gvr.Group, gvr.Version = parts[0], parts[1]
	}
	if ns, name, namespaced := strings.Cut(r.name, "/"); namespaced {
		return l.client.Resource(gvr).Namespace(ns), name
	}
	return l.client.Resource(gvr), r.name
}

// get returns an object, nil if it is not there.
func (l *scenario) get(r ref) *unstructured.Unstructured {
	l.t.Helper()
	objects, name := l.objects(r)
	obj, err := objects.Get(l.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return obj
}

// patch is kubectl patch, of the object or a subresource.
func (l *scenario) patch(r ref, kind types.PatchType, patch string, subresource ...string) {
	l.t.Helper()
	objects, name := l.objects(r)
	if _, err := objects.Patch(l.t.Context(), name, kind, []byte(patch), metav1.PatchOptions{}, subresource...); err != nil {
		l.t.Fatalf("patch %v: %v", r, err)
	}
}

func (l *scenario) merge(r ref, patch string) {
	l.t.Helper()
	l.patch(r, types.MergePatchType, patch)
}

func (l *scenario) delete(r ref) {
	l.t.Helper()
	objects, name := l.objects(r)
	if err := objects.Delete(l.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		l.t.Fatalf("delete %v: %v", r, err)
	}
}

// wants waits until a field of an object has a value; without a path, until the object
// exists.
func (l *scenario) wants(r ref, want string, path ...string) {
	l.t.Helper()
	enginetest.Until(l.t, fmt.Sprintf("%v %v is %q", r, path, want), func() bool {
		obj := l.get(r)
		if obj == nil {
			return false
		}
		value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...)
		return len(path) == 0 || fmt.Sprint(value) == want
	})
}

func (l *scenario) there(r ref) { l.t.Helper(); l.wants(r, "there") }

func (l *scenario) gone(r ref) {
	l.t.Helper()
	enginetest.Until(l.t, fmt.Sprintf("%v is gone", r), func() bool { return l.get(r) == nil })
}

// condition waits for a condition of an object's status.
func (l *scenario) condition(r ref, kind, want string) {
	l.t.Helper()
	enginetest.Until(l.t, fmt.Sprintf("%v: condition %s is %s", r, kind, want), func() bool {
		obj := l.get(r)
		if obj == nil {
			return false
		}
		list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, c := range list {
			if c, ok := c.(map[string]any); ok && c["type"] == kind && c["status"] == want {
				return true
			}
		}
		return false
	})
}

// TestExamples_DoWhatTheirReadmesSay runs all examples in one process, on a control
// plane of its own, because their samples name namespaces. The process has the rights that
// wasmctl manifests prints, and no others. The admission plugin of OpenShift that asks for
// further rights is on.
func TestExamples_DoWhatTheirReadmesSay(t *testing.T) {
	t.Parallel()
	const file = "../../../examples/controllers.yaml"
	runExamples(t, file, false)
}

// runExamples runs all examples in one process, from a file that puts each in a process
// of its own if isolated.
func runExamples(t *testing.T, file string, isolated bool) {
	t.Helper()
	cluster := devclustertest.Own(t, "--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	l := &scenario{t, cluster, client}
	for _, name := range []string{"configmapgenerator", "secretmirror", "memcached", "webapp", "dnsrecord", "periodicjob"} {
		e2e.Example(t, name)
		devclustertest.ApplyFile(t, cluster, "../../../examples/"+name+"/crd.yaml")
	}
	modules, err := filepath.Abs(filepath.Dir(e2e.Example(t, "webapp")))
	if err != nil {
		t.Fatal(err)
	}
	socket := e2e.NewSocket(t)
	c := e2e.RunEnv(t, []string{"MODULES=" + modules}, "-f", file, "--socket", socket, "--kubeconfig", withPrintedRights(t, cluster, file, modules))
	t.Run("together", func(t *testing.T) {
		for name, steps := range map[string]func(*scenario){
			"configmapgenerator": followConfigMapGenerator, "secretmirror": followSecretMirror, "memcached": followMemcached,
			"webapp": followWebApp, "dnsrecord": followDNSRecord, "periodicjob": followPeriodicJob,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if _, err := os.Stat("../../../examples/" + name + "/sample.yaml"); err != nil {
					t.Fatal(err)
				}
				devclustertest.ApplyFile(t, cluster, "../../../examples/"+name+"/sample.yaml")
				steps(&scenario{t, cluster, l.client})
			})
		}
	})
	for name, st := range e2e.ControllersOf(t, socket) {
		if len(st.MissingRights) > 0 {
			t.Errorf("%s: missing rights: %+v", name, st.MissingRights)
		}
		if isolated != (st.Process != nil) {
			t.Errorf("%s: its process is %v", name, st.Process)
		}
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	for _, line := range c.Failures() {
		t.Errorf("a run failed: %s", line)
	}
}

// withPrintedRights returns the kubeconfig of an account with the rights that wasmctl manifests
// prints for a file of controllers.
func withPrintedRights(t *testing.T, cluster *devcluster.Cluster, file, modules string) string {
	t.Helper()
	filled := filepath.Join(t.TempDir(), "controllers.yaml")
	e2e.Replace(t, filled, []byte(strings.ReplaceAll(string(e2e.ReadFile(t, file)), "${MODULES:-../bin/examples}", modules)))
	devclustertest.Apply(t, cluster, e2e.Manifests(t, "-f", filled, "--modules", "image", "--kubeconfig", cluster.Kubeconfig()))
	w := &walled{t: t, cluster: cluster, ns: "wasmctl-system"}
	account := w.account("wasmctl")
	enginetest.Until(t, "the API server knows the roles", func() bool {
		return w.mayDo(account, "default", "list examples.wasmctl.dev/webapps") && w.mayDo(account, "default", "update examples.wasmctl.dev/webapps/finalizers x")
	})
	return e2e.WriteKubeconfig(t, account)
}

func followConfigMapGenerator(l *scenario) {
	cmg, cm := ref{"examples.wasmctl.dev/v1/configmapgenerators", "default/hello"}, ref{"v1/configmaps", "default/hello"}
	l.there(cm)
	l.condition(cmg, "Ready", "True")
	l.delete(cm)
	l.there(cm)
	l.delete(cmg)
	l.gone(cm)
}

func followSecretMirror(l *scenario) {
	a, b := ref{"v1/secrets", "team-a/pull-secret"}, ref{"v1/secrets", "team-b/pull-secret"}
	l.there(a)
	if l.get(b) != nil {
		l.t.Error("a copy that was not requested")
	}
	l.merge(ref{"v1/namespaces", "team-b"}, `{"metadata":{"labels":{"pull":"yes"}}}`)
	l.there(b)
	l.merge(ref{"v1/namespaces", "team-a"}, `{"metadata":{"labels":{"pull":null}}}`)
	l.gone(a)
	l.merge(ref{"v1/secrets", "default/pull-secret"}, `{"stringData":{"token":"new"}}`)
	l.wants(b, "bmV3", "data", "token")
	l.delete(ref{"examples.wasmctl.dev/v1/secretmirrors", "pull-secret"})
	l.gone(b)
}

func followMemcached(l *scenario) {
	mc, deploy := ref{"cache.example.com/v1/memcacheds", "default/sessions"}, ref{"apps/v1/deployments", "caches/default-sessions"}
	l.wants(deploy, "2", "spec", "replicas")
	l.merge(deploy, `{"spec":{"replicas":5}}`)
	l.wants(deploy, "2", "spec", "replicas")
	l.merge(mc, `{"spec":{"namespace":"default"}}`)
	l.gone(deploy)
	moved := ref{deploy.resource, "default/default-sessions"}
	l.there(moved)
	l.delete(mc)
	l.gone(moved)
}

func followWebApp(l *scenario) {
	wa, deploy, svc := ref{"examples.wasmctl.dev/v1/webapps", "default/hello"}, ref{"apps/v1/deployments", "default/hello"}, ref{"v1/services", "default/hello"}
	l.wants(deploy, "2", "spec", "replicas")
	l.there(svc)
	l.condition(wa, "Ready", "Unknown")
	// What a Deployment controller and a node would do.
	generation := l.get(deploy).GetGeneration()
	l.patch(deploy, types.MergePatchType, fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":2,"readyReplicas":2,"updatedReplicas":2,"availableReplicas":2,
		"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable"}]}}`, generation), "status")
	l.condition(wa, "Ready", "True")
	l.merge(deploy, `{"spec":{"replicas":5}}`)
	l.wants(deploy, "2", "spec", "replicas")
	l.patch(wa, types.JSONPatchType, `[{"op":"remove","path":"/spec/port"}]`)
	l.gone(svc)
	l.delete(wa)
	l.gone(deploy)
}

func followDNSRecord(l *scenario) {
	dns, zone := ref{"examples.wasmctl.dev/v1/dnsrecords", "default/web"}, ref{"v1/configmaps", "dns-system/example.com"}
	entry := func(name string) bool {
		data, _, _ := unstructured.NestedMap(l.get(zone).Object, "data")
		_, ok := data[name]
		return ok
	}
	enginetest.Until(l.t, "www is in the zone", func() bool { return entry("www") })
	if got := l.get(dns).GetFinalizers(); len(got) != 1 {
		l.t.Errorf("finalizers: %v", got)
	}
	l.merge(dns, `{"spec":{"hostname":"shop"}}`)
	enginetest.Until(l.t, "shop is in the zone and www out", func() bool { return entry("shop") && !entry("www") })
	l.delete(dns)
	l.gone(dns)
	if entry("shop") {
		l.t.Error("the record is gone and its entry is not")
	}
}

func followPeriodicJob(l *scenario) {
	pj := ref{"examples.wasmctl.dev/v1/periodicjobs", "default/hello"}
	jobs := func() []unstructured.Unstructured {
		objects, _ := l.objects(ref{"batch/v1/jobs", "default/any"})
		list, err := objects.List(l.t.Context(), metav1.ListOptions{})
		if err != nil {
			l.t.Fatal(err)
		}
		return list.Items
	}
	l.merge(pj, `{"spec":{"everySeconds":1}}`)
	enginetest.Until(l.t, "some Jobs", func() bool { return len(jobs()) >= 2 })
	l.merge(pj, `{"spec":{"suspend":true}}`)
	if owner := metav1.GetControllerOf(&jobs()[0]); owner == nil || owner.Kind != "PeriodicJob" {
		l.t.Errorf("a Job without its owner: %v", owner)
	}
	l.delete(pj)
	l.gone(pj)
}

// TestIsolate_ExamplesDoWhatTheirReadmesSay: the examples do all of their work in
// processes that have no access to the cluster.
func TestIsolate_ExamplesDoWhatTheirReadmesSay(t *testing.T) {
	e2e.NeedsGuestProcesses(t)
	t.Parallel()
	content, err := os.ReadFile("../../../examples/controllers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "controllers.yaml")
	isolated := strings.Replace(string(content), "\ndefaults:\n", "\ndefaults:\n  isolate: controller\n", 1)
	if err := os.WriteFile(file, []byte(isolated), 0o600); err != nil {
		t.Fatal(err)
	}
	runExamples(t, file, true)
}
