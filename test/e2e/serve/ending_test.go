// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// cleanup is the finalizer of the modules in these tests.
const cleanup = "cleanup.example.dev/module"

// finalizing creates a Reconciler whose module has a finalizer, and returns when the objects have it. If fails is set, its cleanup fails.
func (t *tenant) finalizing(fails bool) {
	t.Helper()
	t.create("web", map[string]any{
		"module": t.module("module", enginetest.Finalizing(t, cleanup, fails)), "grant": map[string]any{"manifest": true},
		"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": "module", "operator": "DoesNotExist"}}},
	})
	t.ready("web", "True", "Succeeded")
	enginetest.Until(t, "the objects have the finalizer, and so has the status", func() bool { return len(t.held()) >= 4 && len(t.get("web").Status.Finalizers) == 1 })
}

// held returns the names of the ConfigMaps that have the finalizer.
func (t *tenant) held() (names []string) {
	t.Helper()
	list, err := t.client.CoreV1().ConfigMaps(t.ns).List(t.Context(), metav1.ListOptions{})
	t.must(err)
	for i := range list.Items {
		if slices.Contains(list.Items[i].Finalizers, cleanup) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

// deleteObject deletes a ConfigMap.
func (t *tenant) deleteObject(name string) {
	t.Helper()
	t.must(t.client.CoreV1().ConfigMaps(t.ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// end deletes the Reconciler.
func (t *tenant) end() {
	t.Helper()
	t.must(t.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(t.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}))
}

// gone waits until the Reconciler is gone.
func (t *tenant) gone() {
	t.Helper()
	enginetest.Until(t, "the Reconciler is gone", func() bool {
		_, err := t.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(t.ns).Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// wantReleased checks that no object has the finalizer, that these are gone, and that an event was recorded.
func (t *tenant) wantReleased(event string, gone ...string) {
	t.Helper()
	if held := t.held(); len(held) > 0 {
		t.Errorf("stranded: %q", held)
	}
	for i := range 4 {
		name := enginetest.ObjectName(i)
		_, err := t.client.CoreV1().ConfigMaps(t.ns).Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) != slices.Contains(gone, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	enginetest.Until(t, "there is an event "+event, func() bool { return slices.Contains(t.events(t.ns, "web"), event) })
}

// events returns the reasons of the events about an object.
func (t *tenant) events(ns, name string) (reasons []string) {
	t.Helper()
	list, err := t.client.EventsV1().Events(ns).List(t.Context(), metav1.ListOptions{})
	t.must(err)
	for i := range list.Items {
		if list.Items[i].Regarding.Name == name {
			reasons = append(reasons, list.Items[i].Reason)
		}
	}
	return reasons
}

func stop(c *e2e.Process) {
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestServe_DeletedReconcilerStrandsNothing: when a Reconciler is gone, no object has the finalizer of its module. The others are not
// deleted. If the module can, it finalizes those that are being deleted.
func TestServe_DeletedReconcilerStrandsNothing(t *testing.T) {
	t.Parallel()
	t.Run("finalized", func(t *testing.T) {
		tenant := newTenant(t)
		c := startServe(tenant)
		tenant.finalizing(false)
		tenant.deleteObject("o1")
		tenant.end()
		tenant.gone()
		tenant.wantReleased("Released", "o1")
		if slices.Contains(tenant.events(tenant.ns, "web"), "ReleasedWithoutCleanup") {
			t.Error("an object was released without cleanup")
		}
		stop(c)
	})
	t.Run("cleanup fails", func(t *testing.T) {
		tenant := newTenant(t)
		c := startServe(tenant)
		tenant.finalizing(true)
		tenant.deleteObject("o1")
		tenant.end()
		enginetest.Until(t, "the status has the reason", func() bool {
			ready := meta.FindStatusCondition(tenant.get("web").Status.Conditions, v1alpha1.Ready)
			return ready.Reason == "Finalizing" && strings.Contains(ready.Message, "1 object, first configmaps "+tenant.ns+"/o1; last error: "+tenant.ns+"/o1: ")
		})
		if len(tenant.held()) < 4 {
			t.Errorf("only these have the finalizer: %q", tenant.held())
		}
		tenant.patch("web", map[string]any{"suspend": true})
		tenant.gone()
		tenant.wantReleased("ReleasedWithoutCleanup", "o1")
		stop(c)
	})
	t.Run("suspended", func(t *testing.T) {
		tenant := newTenant(t)
		c := startServe(tenant)
		tenant.finalizing(false)
		tenant.patch("web", map[string]any{"suspend": true})
		tenant.ready("web", "False", "Suspended")
		tenant.deleteObject("o1")
		tenant.end()
		tenant.gone()
		tenant.wantReleased("ReleasedWithoutCleanup", "o1")
		stop(c)
	})
	t.Run("bad image", func(t *testing.T) {
		tenant := newTenant(t)
		c := startServe(tenant)
		tenant.finalizing(false)
		stop(c)
		tenant.patch("web", map[string]any{"module": map[string]any{"image": "127.0.0.1:1/no/such:1", "configMapKeyRef": nil}})
		tenant.deleteObject("module")
		tenant.deleteObject("o1")
		tenant.end()
		c = startServe(tenant)
		tenant.gone()
		tenant.wantReleased("ReleasedWithoutCleanup", "o1")
		stop(c)
	})
	t.Run("restarted", func(t *testing.T) {
		tenant := newTenant(t)
		c := startServe(tenant)
		tenant.finalizing(false)
		stop(c)
		tenant.deleteObject("o1")
		tenant.end()
		c = startServe(tenant)
		tenant.gone()
		tenant.wantReleased("Released", "o1")
		stop(c)
	})
	t.Run("orphan", func(t *testing.T) {
		tenant := newTenant(t)
		c := startServe(tenant)
		tenant.finalizing(false)
		tenant.patch("web", map[string]any{"deletionPolicy": "Orphan"})
		tenant.end()
		tenant.gone()
		if len(tenant.held()) < 4 {
			t.Errorf("only these have the finalizer: %q", tenant.held())
		}
		stop(c)
	})
	t.Run("host is gone", func(t *testing.T) {
		tenant := newTenant(t)
		c := startServe(tenant)
		tenant.finalizing(false)
		stop(c)
		tenant.end()
		e2e.Output(t, "release", "--for", "configmaps", "--finalizer", cleanup, "--all", "-n", tenant.ns, "--kubeconfig", tenant.kubeconfig)
		e2e.Output(t, "release", "--for", "reconcilers.wasmctl.dev", "--finalizer", "wasmctl.dev/serve", "--all", "-n", tenant.ns, "--kubeconfig", tenant.kubeconfig)
		tenant.gone()
		if held := tenant.held(); len(held) > 0 {
			t.Errorf("stranded: %q", held)
		}
	})
	t.Run("kind is gone", func(t *testing.T) {
		tenant := newTenant(t)
		tenant.create("web", map[string]any{"module": map[string]any{"image": "127.0.0.1:1/no/such:1"}})
		resource := tenant.dynamic.Resource(v1alpha1.GVR("Reconciler")).Namespace(tenant.ns)
		_, err := resource.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata": {"finalizers": ["wasmctl.dev/serve"]}}`), metav1.PatchOptions{})
		tenant.must(err)
		status := fmt.Sprintf(`{"status": {"finalizers": [{"name": %q, "for": "nosuch.example.dev", "namespaces": [%q]}]}}`, cleanup, tenant.ns)
		_, err = resource.Patch(t.Context(), "web", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
		tenant.must(err)
		tenant.end()
		c := startServe(tenant)
		tenant.gone()
		stop(c)
	})
}

// TestServe_ReleasesOnlyWhatTheAccountCould: the host takes no finalizer off with its own rights if the module's account never had the right to
// put it on. Otherwise, a module could name the finalizer of another program.
func TestServe_ReleasesOnlyWhatTheAccountCould(t *testing.T) {
	t.Parallel()
	tenant := newTenant(t)
	role, err := tenant.client.RbacV1().Roles(tenant.ns).Get(t.Context(), "module", metav1.GetOptions{})
	tenant.must(err)
	role.Rules[0].Verbs = []string{"get", "list", "watch"}
	_, err = tenant.client.RbacV1().Roles(tenant.ns).Update(t.Context(), role, metav1.UpdateOptions{})
	tenant.must(err)
	_, err = tenant.client.CoreV1().ConfigMaps(tenant.ns).Patch(t.Context(), "o1", types.MergePatchType, []byte(`{"metadata": {"finalizers": ["`+cleanup+`"]}}`), metav1.PatchOptions{})
	tenant.must(err)
	c := startServe(tenant)
	tenant.create("web", map[string]any{"module": tenant.module("module", enginetest.Finalizing(t, cleanup, false)), "grant": map[string]any{"manifest": true}})
	enginetest.Until(t, "the module runs", func() bool { return tenant.get("web").Status.For != "" })
	tenant.end()
	tenant.gone()
	if held := tenant.held(); !slices.Equal(held, []string{"o1"}) {
		t.Errorf("with the finalizer of another program: %q", held)
	}
	stop(c)
}

// TestServe_DeletedReconcilerOfReplicasStrandsNothing: this also holds if two replicas share the objects. Each finalizes its own, and
// neither adds the finalizer again after the release.
func TestServe_DeletedReconcilerOfReplicasStrandsNothing(t *testing.T) {
	t.Parallel()
	tenant := newTenant(t)
	args := []string{"--share", "objects", "--shards", "16", "--leader-elect-resource-namespace", tenant.ns}
	for i := range 24 { // so that both replicas get some
		_, err := tenant.client.CoreV1().ConfigMaps(tenant.ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("shared", i)}}, metav1.CreateOptions{})
		tenant.must(err)
	}
	replicas := []*e2e.Process{startServe(tenant, args...), startServe(tenant, args...)}
	tenant.finalizing(false)
	enginetest.Until(t, "all have the finalizer, and both replicas work", func() bool {
		return len(tenant.held()) >= 28 && replicas[0].Count(`"msg":"reconciled"`) > 0 && replicas[1].Count(`"msg":"reconciled"`) > 0
	})
	for i := range 12 {
		tenant.deleteObject(fmt.Sprint("shared", i))
	}
	tenant.end()
	tenant.gone()
	tenant.wantReleased("Released")
	if slices.Contains(tenant.events(tenant.ns, "web"), "ReleasedWithoutCleanup") {
		t.Error("an object was released without cleanup")
	}
	for _, c := range replicas {
		stop(c)
	}
}

// TestServe_TenantsNamespaceCanBeDeleted: also if the module's rights go first. The process has only the rights that are printed for all namespaces: those for one namespace go with it.
func TestServe_TenantsNamespaceCanBeDeleted(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(t *tenant){
		"at once": func(*tenant) {},
		"rights first": func(t *tenant) {
			t.must(t.client.RbacV1().RoleBindings(t.ns).Delete(t.Context(), "module", metav1.DeleteOptions{}))
			t.must(t.client.RbacV1().Roles(t.ns).Delete(t.Context(), "module", metav1.DeleteOptions{}))
			t.must(t.client.CoreV1().ServiceAccounts(t.ns).Delete(t.Context(), "default", metav1.DeleteOptions{}))
		},
		"module and Reconciler first": func(t *tenant) {
			t.deleteObject("module")
			t.end()
		},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := newTenant(t)
			cluster := devclustertest.Shared(t)
			home := devclustertest.Namespace(t, cluster)
			rights, err := exec.Command("wasmctl", "rbac", "--serve", "--serviceaccount", home+":host").Output()
			tenant.must(err)
			devclustertest.Apply(t, cluster, rights)
			token, err := tenant.client.CoreV1().ServiceAccounts(home).CreateToken(t.Context(), "host", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			tenant.must(err)
			rc := rest.AnonymousClientConfig(cluster.RESTConfig())
			rc.BearerToken = token.Status.Token
			tenant.kubeconfig = e2e.WriteKubeconfig(t, rc)
			c := startServe(tenant)
			tenant.finalizing(false)
			first(tenant)
			tenant.must(tenant.client.CoreV1().Namespaces().Delete(t.Context(), tenant.ns, metav1.DeleteOptions{}))
			enginetest.Until(t, "the namespace is gone", func() bool {
				_, err := tenant.client.CoreV1().Namespaces().Get(t.Context(), tenant.ns, metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
			if name == "rights first" {
				enginetest.Until(t, "an event about the namespace reports the release", func() bool {
					return slices.Contains(tenant.events(metav1.NamespaceDefault, tenant.ns), "ReleasedWithoutCleanup")
				})
			}
			stop(c)
		})
	}
}
