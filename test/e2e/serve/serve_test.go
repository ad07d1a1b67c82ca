// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// tenant is a namespace with Reconcilers.
type tenant struct {
	*testing.T

	ns, kubeconfig string
	client         kubernetes.Interface
	dynamic        dynamic.Interface
}

// newTenant makes a namespace with ConfigMaps o0 to o3, whose default service account
// has all rights for its ConfigMaps, on a cluster with the CRDs.
func newTenant(t *testing.T) *tenant {
	t.Helper()
	return newTenantOn(t, devclustertest.Shared(t))
}

func newTenantOn(t *testing.T, cluster *devcluster.Cluster) *tenant {
	t.Helper()
	ns, kubeconfig := e2e.NewConfigMapsOn(t, cluster)
	out := &tenant{T: t, ns: ns, kubeconfig: kubeconfig, client: kubernetes.NewForConfigOrDie(cluster.RESTConfig()), dynamic: dynamic.NewForConfigOrDie(cluster.RESTConfig())}
	devclustertest.Apply(t, cluster, []byte(v1alpha1.CRDs))
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "module"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps", "configmaps/status"}, Verbs: []string{"*"}}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "module"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "module"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: ns}},
	}
	_, err := out.client.RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{})
	out.must(err)
	_, err = out.client.RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{})
	out.must(err)
	return out
}

func (t *tenant) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// module stores a module in a ConfigMap, and returns its reference for a spec.
func (t *tenant) module(name string, wasm []byte) map[string]any {
	t.Helper()
	_, err := t.client.CoreV1().ConfigMaps(t.ns).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"module": "true"}}, BinaryData: map[string][]byte{"module.wasm": wasm},
	}, metav1.CreateOptions{})
	t.must(err)
	return map[string]any{"configMapKeyRef": map[string]any{"name": name, "key": "module.wasm"}}
}

// create creates a Reconciler.
func (t *tenant) create(name string, spec map[string]any) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "wasmctl.dev/v1alpha1", "kind": "Reconciler", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
	_, err := t.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(t.ns).Create(t.Context(), o, metav1.CreateOptions{})
	t.must(err)
}

// patch changes a Reconciler's spec.
func (t *tenant) patch(name string, spec map[string]any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"spec": spec})
	t.must(err)
	_, err = t.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(t.ns).Patch(t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{})
	t.must(err)
}

func (t *tenant) get(name string) (r v1alpha1.Reconciler) {
	t.Helper()
	o, err := t.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(t.ns).Get(t.Context(), name, metav1.GetOptions{})
	t.must(err)
	t.must(runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &r))
	return r
}

// ready waits until the condition Ready has a status and a reason.
func (t *tenant) ready(name, status, reason string) v1alpha1.Reconciler {
	t.Helper()
	return t.condition(name, v1alpha1.Ready, status, reason)
}

// condition waits until a condition of the newest generation has a status and a reason.
func (t *tenant) condition(name, kind, status, reason string) (r v1alpha1.Reconciler) {
	t.Helper()
	defer func() {
		if t.Failed() {
			b, _ := json.MarshalIndent(r.Status, "", "  ") //nolint:errchkjson // for people
			t.Logf("%s: %s", name, b)
		}
	}()
	enginetest.Until(t, name+": "+kind+" "+status+" "+reason, func() bool {
		r = t.get(name)
		c := meta.FindStatusCondition(r.Status.Conditions, kind)
		return c != nil && string(c.Status) == status && c.Reason == reason && c.ObservedGeneration == r.Generation
	})
	return r
}

func startServe(t *tenant, args ...string) *e2e.Process {
	t.Helper()
	return e2e.Start(t.T, exec.Command("wasmctl", append([]string{
		"serve", "--log-format", "json", "--cache-dir", e2e.CodeDir, "--kubeconfig", t.kubeconfig, "--socket", e2e.NewSocket(t.T), "-n", t.ns,
	}, args...)...))
}

// TestServe_SwapsAndRollsBack: a change of the module of a Reconciler is a swap, also
// together with a change that needs a restart. Ready means that the module has passed its
// probation. One that fails is rolled back, also across restarts of the process. Events
// report both.
func TestServe_SwapsAndRollsBack(t *testing.T) {
	t.Parallel()
	tenant := newTenant(t)
	good, better, bad := enginetest.Worse(enginetest.Good, 1), enginetest.Worse(enginetest.Good, 2), enginetest.Worse(enginetest.Traps, 3)
	tenant.create("web", map[string]any{
		"module": tenant.module("v1", good), "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"},
		"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": "module", "operator": "DoesNotExist"}}},
		"rollout":  map[string]any{"probation": "2s"},
	})
	c := startServe(tenant)
	r := tenant.ready("web", "True", "Succeeded")
	if r.Status.Live.Digest != load.DigestOf(good) || r.Status.For != "configmaps" || r.Status.Objects.Watched < 4 {
		t.Errorf("%+v", r.Status)
	}
	tenant.patch("web", map[string]any{"module": tenant.module("v2", better)})
	r = tenant.ready("web", "True", "Succeeded")
	if r.Status.Live.Digest != load.DigestOf(better) || len(r.Status.History) != 1 || r.Status.History[0].Digest != load.DigestOf(good) {
		t.Errorf("%+v", r.Status)
	}
	tenant.patch("web", map[string]any{"module": tenant.module("v3", bad), "concurrency": 3})
	r = tenant.ready("web", "False", "RolledBack")
	if r.Status.Live.Digest != load.DigestOf(better) || r.Status.Refused.Digest != load.DigestOf(bad) || !meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.Stalled) {
		t.Errorf("%+v", r.Status)
	}
	enginetest.Until(t, "events on the Reconciler report that", func() bool {
		reasons := tenant.events(tenant.ns, "web")
		return slices.Contains(reasons, "Succeeded") && slices.Contains(reasons, "RolledBack")
	})
	c.Signal(syscall.SIGKILL)
	<-c.Done
	c = startServe(tenant)
	c.WantLine(`"msg":"reconciled"`, tenant.ns+"/o0")
	r = tenant.ready("web", "False", "RolledBack")
	if r.Status.Live.Digest != load.DigestOf(better) {
		t.Errorf("%+v", r.Status)
	}
	tenant.patch("web", map[string]any{"module": map[string]any{"configMapKeyRef": map[string]any{"name": "v1"}}})
	tenant.ready("web", "True", "Succeeded")
	tenant.must(tenant.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(tenant.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	enginetest.Until(t, "it is gone", func() bool {
		list, err := tenant.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(tenant.ns).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestServe_ReadyWithoutObjects: without objects, a swap ends after its probation.
func TestServe_ReadyWithoutObjects(t *testing.T) {
	tenant := newTenant(t)
	c := startServe(tenant)
	tenant.create("web", map[string]any{
		"module": tenant.module("v1", enginetest.Worse(enginetest.Good, 1)), "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"},
		"selector": map[string]any{"matchLabels": map[string]any{"no": "such"}}, "rollout": map[string]any{"probation": "1s"},
	})
	tenant.ready("web", "True", "Succeeded")
	next := enginetest.Worse(enginetest.Good, 2)
	tenant.patch("web", map[string]any{"module": tenant.module("v2", next)})
	if r := tenant.ready("web", "True", "Succeeded"); r.Status.Live.Digest != load.DigestOf(next) {
		t.Errorf("%+v", r.Status)
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestServe_StopsWhatIsGone: also if the finalizer was removed by hand, or another
// object has the name.
func TestServe_StopsWhatIsGone(t *testing.T) {
	tenant := newTenant(t)
	c := startServe(tenant)
	spec := map[string]any{"module": tenant.module("v1", enginetest.Worse(enginetest.Good, 1)), "for": map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	for range 2 {
		tenant.create("web", spec)
		tenant.ready("web", "True", "Succeeded")
		resource := tenant.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(tenant.ns)
		_, err := resource.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		tenant.must(err)
		tenant.must(resource.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	}
	enginetest.Until(t, "both have ended", func() bool {
		return strings.Count(c.Text(), `"msg":"stopped","controller":"`+tenant.ns+`.web"`) == 2
	})
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}
