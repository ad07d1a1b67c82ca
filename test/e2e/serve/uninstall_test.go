// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmctl/wasmctl/devcluster"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

const system = "wasmctl-system"

// removal is an installation with a running process, and a tenant whose module has a finalizer on its objects.
type removal struct {
	*installation

	process *e2e.Process
	ending  bool // the process got SIGTERM
}

// endPod does what Kubernetes does with the process when the Deployment or the namespace is deleted.
func (r *removal) endPod() {
	if !r.ending {
		r.ending = true
		r.process.Signal(syscall.SIGTERM)
	}
}

func newRemoval(t *testing.T, cluster *devcluster.Cluster) *removal {
	t.Helper()
	e2e.Output(t, "install", "--image", "registry.example/wasmctl:1", "--kubeconfig", cluster.Kubeconfig(), "--wait=false")
	i := &installation{cluster: cluster, tenant: newTenantOn(t, cluster)}
	c := e2e.Start(t, exec.Command("wasmctl", "serve", "--log-format", "json", "--cache-dir", e2e.CodeDir, "--kubeconfig", e2e.WriteKubeconfig(t, i.host()), "--socket", "none"))
	i.finalizing(false)
	enginetest.Until(t, "all objects, and kube-root-ca.crt, have the finalizer", func() bool { return len(i.held()) == 5 })
	for resource, namespace := range map[string]string{"clusterroles": "", "clusterrolebindings": "", "serviceaccounts": system} {
		gvr, name := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}, system+":wasmctl"
		if namespace != "" {
			gvr.Group, name = "", "wasmctl"
		}
		enginetest.Until(t, "the finalizer is on "+resource, func() bool {
			right, err := i.dynamic.Resource(gvr).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
			i.must(err)
			return len(right.GetFinalizers()) > 0
		})
	}
	return &removal{installation: i, process: c}
}

// remove removes a part of the installation: P the process, which crashes, and its Deployment, D only the Deployment, K the ClusterRole, B its
// binding, A the service account, L the Role and its binding, R all of these rights, N the namespace, C the CRDs, T the Reconciler, and X the
// namespace of the tenant. It does not wait.
func (r *removal) remove(part rune) {
	r.Helper()
	ctx, del := r.Context(), metav1.DeleteOptions{}
	rbac, name := r.client.RbacV1(), system+":wasmctl"
	var errs []error
	switch part {
	case 'P':
		r.process.Signal(syscall.SIGKILL)
		<-r.process.Done
		errs = []error{r.client.AppsV1().Deployments(system).Delete(ctx, "wasmctl", del)}
	case 'D':
		errs = []error{r.client.AppsV1().Deployments(system).Delete(ctx, "wasmctl", del)}
		r.endPod()
	case 'K':
		errs = []error{rbac.ClusterRoles().Delete(ctx, name, del)}
	case 'B':
		errs = []error{rbac.ClusterRoleBindings().Delete(ctx, name, del)}
	case 'A':
		errs = []error{r.client.CoreV1().ServiceAccounts(system).Delete(ctx, "wasmctl", del)}
	case 'L':
		errs = []error{rbac.RoleBindings(system).Delete(ctx, "wasmctl", del), rbac.Roles(system).Delete(ctx, "wasmctl", del)}
	case 'R':
		for _, right := range "BKLA" {
			r.remove(right)
		}
	case 'N':
		errs = []error{r.client.CoreV1().Namespaces().Delete(ctx, system, del)}
		r.endPod()
	case 'C':
		for _, name := range []string{"reconcilers.wasmctl.dev", "clusterreconcilers.wasmctl.dev"} {
			errs = append(errs, r.dynamic.Resource(crdResource).Delete(ctx, name, del))
		}
	case 'T':
		r.end()
	case 'X':
		errs = []error{r.client.CoreV1().Namespaces().Delete(ctx, r.ns, del)}
	}
	for _, err := range errs {
		if err != nil && !apierrors.IsNotFound(err) { // the namespace may have gone first
			r.Fatalf("%c: %v", part, err)
		}
	}
}

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// uninstall runs the command, which must succeed, and returns its output.
func (r *removal) uninstall(args ...string) string {
	r.Helper()
	out, err := exec.Command("wasmctl", append([]string{"uninstall", "--kubeconfig", r.kubeconfig}, args...)...).CombinedOutput()
	if err != nil {
		r.Fatalf("uninstall %q: %v:\n%s", args, err, out)
	}
	return string(out)
}

// objects returns the names of the tenant's ConfigMaps.
func (r *removal) objects() (names []string) {
	r.Helper()
	list, err := r.client.CoreV1().ConfigMaps(r.ns).List(r.Context(), metav1.ListOptions{})
	r.must(err)
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// wantGone checks that nothing is left, and that no deletion waits.
func (r *removal) wantGone() {
	r.Helper()
	crds, err := r.dynamic.Resource(crdResource).List(r.Context(), metav1.ListOptions{})
	r.must(err)
	for i := range crds.Items {
		if strings.HasSuffix(crds.Items[i].GetName(), ".wasmctl.dev") {
			r.Errorf("is left: %s", crds.Items[i].GetName())
		}
	}
	if held := r.held(); len(held) > 0 {
		r.Errorf("stranded: %q", held)
	}
	r.wantNoDeletion()
	if again := r.uninstall(); !strings.Contains(again, "there is nothing to remove") {
		r.Errorf("the second time: %s", again)
	}
}

// wantNoDeletion waits until no deletion waits.
func (r *removal) wantNoDeletion() {
	r.Helper()
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	for _, gvr := range []schema.GroupVersionResource{
		crdResource, {Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "serviceaccounts"}, rbac.WithResource("clusterroles"), rbac.WithResource("clusterrolebindings"),
	} {
		enginetest.Until(r.T, "no deletion waits: "+gvr.Resource, func() bool {
			list, err := r.dynamic.Resource(gvr).List(r.Context(), metav1.ListOptions{})
			r.must(err)
			return !slices.ContainsFunc(list.Items, func(o unstructured.Unstructured) bool { return o.GetDeletionTimestamp() != nil })
		})
	}
}

// TestUninstall_FromAnyState: whichever parts of an installation were removed before, and in which order, the command removes the rest. The
// process has crashed.
func TestUninstall_FromAnyState(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Own(t)
	for _, order := range []string{"PRC", "RPNT", "PX"} {
		t.Run(order, func(t *testing.T) {
			r := newRemoval(t, cluster)
			r.deleteObject("o1") // its deletion waits for the module
			for _, part := range order {
				r.remove(part)
			}
			r.uninstall()
			r.wantGone()
		})
	}
	t.Run("nothing before", func(t *testing.T) {
		r := newRemoval(t, cluster)
		_, err := r.client.AppsV1().Deployments(system).Patch(t.Context(), "wasmctl", types.MergePatchType, []byte(`{"status":{"replicas":1,"readyReplicas":1,"availableReplicas":1}}`), metav1.PatchOptions{}, "status")
		r.must(err)
		e2e.Output(t, "check", "--kubeconfig", r.kubeconfig) // it succeeds
		plan := r.uninstall("--dry-run")
		if held := r.held(); len(held) != 5 || !strings.Contains(plan, "would delete reconcilers.wasmctl.dev "+r.ns+"/web\n") {
			t.Errorf("a dry run leaves %q:\n%s", held, plan)
		}
		r.deleteObject("o1")
		out := r.uninstall()
		if names := r.objects(); slices.Contains(names, "o1") || !slices.Contains(names, "o2") {
			t.Errorf("these are left: %q", names)
		}
		if strings.Contains(out, "without cleanup") || slices.Contains(r.events(r.ns, "web"), "ReleasedWithoutCleanup") {
			t.Errorf("an object was released without cleanup:\n%s", out)
		}
		r.wantGone()
	})
}

// TestLeave_InAnyOrder: while the process runs, the objects of an installation can be deleted in any order. It takes its finalizers off, and no
// deletion waits for it.
func TestLeave_InAnyOrder(t *testing.T) {
	t.Parallel()
	cluster := devclustertest.Own(t)
	parts, seed := []rune("DKBALNC"), rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed", seed)
	orders := []string{
		"NCAKBLD", // kubectl delete -f
		"CDLBKA",  // the same in reverse, of kubectl delete -k, with a namespace that others need
		"DLBKA",   // helm uninstall
		"N",
	}
	random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	orders = append(orders, string(parts))
	for _, order := range orders {
		t.Run(order, func(t *testing.T) {
			r := newRemoval(t, cluster)
			r.deleteObject("o1") // its deletion waits for the module
			for _, part := range order {
				r.remove(part)
			}
			r.process.WantExit(e2e.ExitOK)
			if held := r.held(); len(held) > 0 {
				t.Errorf("stranded: %q", held)
			}
			if !strings.ContainsRune(order, 'C') {
				if web := r.get("web"); len(web.Finalizers) > 0 || web.DeletionTimestamp != nil {
					t.Errorf("the Reconciler: %+v", web.ObjectMeta)
				}
				r.remove('C') // and now nothing holds the Reconciler
			}
			r.remove('R') // after the namespace alone, they have no finalizer either
			r.wantNoDeletion()
			r.uninstall() // for the next order: the rest of the objects
			r.wantGone()
		})
	}
}
