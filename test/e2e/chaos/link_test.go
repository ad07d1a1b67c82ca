// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// away makes all changes that a controller could miss while it is cut off: new, changed
// and deleted apps, and changes of children by hand.
func away(f *e2e.Fleet) {
	f.T.Helper()
	ctx := f.T.Context()
	f.Put(ctx, "new", e2e.App{Image: "i:new", Port: true})
	f.Put(ctx, "changed", e2e.App{Image: "i:2"}) // its Service must be deleted
	f.Put(ctx, "gone", e2e.App{})
	f.Put(ctx, "again", e2e.App{})
	f.Put(ctx, "again", e2e.App{Image: "i:again", Port: true}) // another object of the same name
	e2e.Patch(f, e2e.Deployments, "touched", `{"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "hacked"}]}}}}`)
	if err := f.Client.Resource(e2e.Services).Namespace(f.Ns).Delete(ctx, "orphaned", metav1.DeleteOptions{}); err != nil {
		f.T.Fatal(err)
	}
}

// settled makes the apps that away changes, and waits for their children.
func settled(f *e2e.Fleet) {
	f.T.Helper()
	for _, name := range []string{"same", "changed", "gone", "again", "touched", "orphaned"} {
		f.Put(f.T.Context(), name, e2e.App{Image: "i:1", Port: true})
	}
	f.Confirm()
}

// TestChaos_StalledConnectionLosesNothing: rule 14: a connection that is open but
// transfers nothing is noticed and shown, and all changes in the meantime are
// reconciled.
func TestChaos_StalledConnectionLosesNothing(t *testing.T) {
	t.Parallel()
	f, socket := e2e.NewFleet(t, devclustertest.Shared(t)), e2e.NewSocket(t)
	link := devclustertest.Proxy(t, f.Cluster)
	// client-go's defaults are 30 s and 15 s.
	c := f.StartEnv([]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS=2", "HTTP2_PING_TIMEOUT_SECONDS=2"},
		"--kubeconfig", e2e.WriteKubeconfig(t, link.Through(f.Cluster.RESTConfig())), "--socket", socket)
	settled(f)
	link.Stall()
	away(f)
	awaitPhase(t, socket, "webapps", "failing")
	if text := e2e.Steer(t, "status", socket); !strings.Contains(text, "failing") || !strings.Contains(text, "watches not ready") {
		t.Errorf("status does not say that the watch fails: %s", text)
	}
	c.WantLine(`"msg":"watch failing"`, "webapps")
	link.Resume()
	f.Confirm()
	awaitPhase(t, socket, "webapps", "ready")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	e2e.WantNoneTwice(t, c.Reconciles())
}

// TestChaos_CompactionLosesNothing: rules 11 and 12: etcd was compacted while the
// controller was cut off, so no watch can be resumed.
func TestChaos_CompactionLosesNothing(t *testing.T) {
	t.Parallel()
	// Without the watch cache, etcd serves the watches.
	f, socket := e2e.NewFleet(t, devclustertest.Own(t, "--etcd-compaction-interval=1s", "--watch-cache=false")), e2e.NewSocket(t)
	link := devclustertest.Proxy(t, f.Cluster)
	c := f.Start("--kubeconfig", e2e.WriteKubeconfig(t, link.Through(f.Cluster.RESTConfig())), "--socket", socket)
	settled(f)
	link.Refuse()
	link.Cut()
	awaitPhase(t, socket, "webapps", "failing")
	version := versionOf(f)
	away(f)
	enginetest.Until(t, "compacted", func() bool { return expired(f, version) })
	link.Resume()
	f.Confirm()
	awaitPhase(t, socket, "webapps", "ready")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	e2e.WantNoneTwice(t, c.Reconciles())
}

// versionOf returns the present resourceVersion, which is the last one that a controller can have seen
// if it is cut off now.
func versionOf(f *e2e.Fleet) string {
	f.T.Helper()
	list, err := f.Client.Resource(e2e.WebApps).Namespace(f.Ns).List(f.T.Context(), metav1.ListOptions{})
	if err != nil {
		f.T.Fatal(err)
	}
	return list.GetResourceVersion()
}

// expired reports whether the API server answers a watch from a version with 410.
func expired(f *e2e.Fleet, version string) bool {
	seconds := int64(1)
	w, err := f.Client.Resource(e2e.WebApps).Namespace(f.Ns).Watch(f.T.Context(), metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds})
	if err == nil {
		defer w.Stop()
		for ev := range w.ResultChan() {
			if err = apierrors.FromObject(ev.Object); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				return true
			}
		}
		return false
	}
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// TestChaos_RightsRevokedAndGivenBack: rule 13: without rights the watches are denied,
// and the log and "wasmctl status" report it. With the rights back, nothing was missed.
func TestChaos_RightsRevokedAndGivenBack(t *testing.T) {
	t.Parallel()
	f, socket := e2e.NewFleet(t, devclustertest.Shared(t)), e2e.NewSocket(t)
	limited := devclustertest.Limited(t, f.Cluster, f.Ns)
	link := devclustertest.Proxy(t, f.Cluster)
	user := newUser(f, limited)
	user.grant()
	c := f.Start("--kubeconfig", e2e.WriteKubeconfig(t, link.Through(limited)), "--socket", socket)
	settled(f)
	user.revoke()
	link.Cut() // an open watch goes on without rights
	away(f)
	for _, resource := range []string{"webapps", "deployments", "services"} {
		if w := awaitPhase(t, socket, resource, "denied"); !strings.Contains(w.Message, "forbidden") {
			t.Errorf("the message of the watch of %s is %q", resource, w.Message)
		}
		c.WantLine(`"msg":"watch denied"`, resource, "forbidden")
	}
	if text := e2e.Steer(t, "status", socket); !strings.Contains(text, "denied") {
		t.Errorf("status does not say that the watch is denied: %s", text)
	}
	user.grant()
	f.Confirm()
	awaitPhase(t, socket, "webapps", "ready")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	e2e.WantNoneTwice(t, c.Reconciles())
}

// user is a service account whose rights are granted and revoked.
type user struct {
	f       *e2e.Fleet
	admin   kubernetes.Interface
	limited kubernetes.Interface
	subject rbacv1.Subject
}

func newUser(f *e2e.Fleet, limited *rest.Config) *user {
	f.T.Helper()
	admin, err := kubernetes.NewForConfig(f.Cluster.RESTConfig())
	if err != nil {
		f.T.Fatal(err)
	}
	mine, err := kubernetes.NewForConfig(limited)
	if err != nil {
		f.T.Fatal(err)
	}
	return &user{f: f, admin: admin, limited: mine, subject: rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: e2e.WhoAmI(f.T, mine)}}
}

// grant gives all rights in the namespace.
func (u *user) grant() {
	t, roles, bindings := u.f.T, u.admin.RbacV1().Roles(u.f.Ns), u.admin.RbacV1().RoleBindings(u.f.Ns)
	t.Helper()
	meta := metav1.ObjectMeta{Name: "all"}
	if _, err := roles.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := bindings.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{u.subject}, RoleRef: rbacv1.RoleRef{Kind: "Role", APIGroup: rbacv1.GroupName, Name: meta.Name},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	enginetest.Until(t, "the rights are in force", func() bool { return u.denied() == nil })
}

// revoke removes them, and returns when they are gone.
func (u *user) revoke() {
	t := u.f.T
	t.Helper()
	for _, err := range []error{
		u.admin.RbacV1().RoleBindings(u.f.Ns).Delete(t.Context(), "all", metav1.DeleteOptions{}),
		u.admin.RbacV1().Roles(u.f.Ns).Delete(t.Context(), "all", metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Until(t, "the rights are gone", func() bool { return apierrors.IsForbidden(u.denied()) })
}

func (u *user) denied() error {
	_, err := u.limited.CoreV1().Services(u.f.Ns).List(u.f.T.Context(), metav1.ListOptions{Limit: 1})
	return err
}

// TestChaos_KindDeletedAndMadeAgain: a CustomResourceDefinition is deleted, with all its
// objects, and created again. In between the watch is absent, and the new objects are
// reconciled, although some have the names of old ones.
func TestChaos_KindDeletedAndMadeAgain(t *testing.T) {
	t.Parallel()
	f, socket := e2e.NewFleet(t, devclustertest.Own(t)), e2e.NewSocket(t)
	c := f.Start("--socket", socket)
	settled(f)
	crds := f.Client.Resource(customResourceDefinitions)
	if err := crds.Delete(t.Context(), "webapps.examples.wasmctl.dev", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, socket, "webapps", "absent")
	c.WantLine(`"msg":"watch absent"`, "webapps")
	devclustertest.ApplyFile(t, f.Cluster, "../../../examples/webapp/crd.yaml")
	f.Mu.Lock()
	clear(f.Want) // the old objects are gone
	f.Mu.Unlock()
	for i := range 5 {
		f.Put(t.Context(), fmt.Sprint("new", i), e2e.App{Image: "i:new", Port: true})
	}
	f.Put(t.Context(), "same", e2e.App{Image: "i:again"})
	f.Put(t.Context(), "gone", e2e.App{Image: "i:again", Port: true})
	f.Confirm()
	awaitPhase(t, socket, "webapps", "ready")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	e2e.WantNoneTwice(t, c.Reconciles())
}

var customResourceDefinitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// awaitPhase waits until the watch of a resource is in a phase, and "wasmctl status"
// shows it.
func awaitPhase(t *testing.T, socket, resource, phase string) admin.Watch {
	t.Helper()
	var found admin.Watch
	enginetest.Until(t, fmt.Sprintf("the watch of %s is %s", resource, phase), func() bool {
		for _, w := range e2e.StatusOf(t, socket).Watches {
			if strings.HasPrefix(w.Source, resource) && w.Phase == phase {
				found = w
				return true
			}
		}
		return false
	})
	return found
}
