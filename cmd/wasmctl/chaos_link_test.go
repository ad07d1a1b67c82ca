package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// away changes everything that a controller could miss while it is cut off: new
// apps, changed and deleted ones, and children that somebody touches.
func (f *fleet) away() {
	f.t.Helper()
	ctx := f.t.Context()
	f.put(ctx, "new", app{image: "i:new", port: true})
	f.put(ctx, "changed", app{image: "i:2"}) // its Service is to go
	f.put(ctx, "gone", app{})
	f.put(ctx, "again", app{})
	f.put(ctx, "again", app{image: "i:again", port: true}) // another object of the same name
	f.patch(deployments, "touched", `{"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "hacked"}]}}}}`)
	if err := f.client.Resource(services).Namespace(f.ns).Delete(ctx, "orphaned", metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// settled makes the apps that away changes, and waits for their children.
func (f *fleet) settled() {
	f.t.Helper()
	for _, name := range []string{"same", "changed", "gone", "again", "touched", "orphaned"} {
		f.put(f.t.Context(), name, app{image: "i:1", port: true})
	}
	f.confirm()
}

// TestChaos_StalledConnectionLosesNothing: rule 14: a connection that is open
// and passes nothing on is noticed and shown, and what happened meanwhile is
// reconciled.
func TestChaos_StalledConnectionLosesNothing(t *testing.T) {
	t.Parallel()
	f, socket := newFleet(t, devclustertest.Shared(t)), newSocket(t)
	link := devclustertest.Proxy(t, f.cluster)
	// client-go's defaults are 30 s and 15 s.
	c := f.startEnv([]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS=2", "HTTP2_PING_TIMEOUT_SECONDS=2"},
		"--kubeconfig", writeKubeconfig(t, link.Through(f.admin())), "--socket", socket)
	f.settled()
	link.Stall()
	f.away()
	awaitPhase(t, socket, "webapps", "failing")
	if text := steer(t, "status", socket); !strings.Contains(text, "failing") || !strings.Contains(text, "watches not ready") {
		t.Errorf("status does not say that the watch fails: %s", text)
	}
	c.wantLine(`"msg":"watch failing"`, "webapps")
	link.Resume()
	f.confirm()
	awaitPhase(t, socket, "webapps", "ready")
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	wantNoneTwice(t, c.runs())
}

func (f *fleet) admin() *rest.Config { return f.cluster.RESTConfig() }

// TestChaos_CompactionLosesNothing: rules 11 and 12: etcd has forgotten what
// happened while the controller was cut off, so that no watch can go on from
// where it was.
func TestChaos_CompactionLosesNothing(t *testing.T) {
	t.Parallel()
	// Without a watch cache, watches are etcd's.
	f, socket := newFleet(t, devclustertest.Own(t, "--etcd-compaction-interval=1s", "--watch-cache=false")), newSocket(t)
	link := devclustertest.Proxy(t, f.cluster)
	c := f.start("--kubeconfig", writeKubeconfig(t, link.Through(f.admin())), "--socket", socket)
	f.settled()
	link.Refuse()
	link.Cut()
	awaitPhase(t, socket, "webapps", "failing")
	version := f.version()
	f.away()
	enginetest.Until(t, "compacted", func() bool { return f.expired(version) })
	link.Resume()
	f.confirm()
	awaitPhase(t, socket, "webapps", "ready")
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	wantNoneTwice(t, c.runs())
}

// version returns the resourceVersion of now: the last one that a controller can
// have seen that is cut off now.
func (f *fleet) version() string {
	f.t.Helper()
	list, err := f.client.Resource(webApps).Namespace(f.ns).List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return list.GetResourceVersion()
}

// expired asks the API server whether a watch from a version on is 410.
func (f *fleet) expired(version string) bool {
	seconds := int64(1)
	w, err := f.client.Resource(webApps).Namespace(f.ns).Watch(f.t.Context(), metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds})
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

// TestChaos_RightsRevokedAndGivenBack: rule 13: without rights the watches are
// denied, the log and "wasmctl status" say so, and with them nothing is missing.
func TestChaos_RightsRevokedAndGivenBack(t *testing.T) {
	t.Parallel()
	f, socket := newFleet(t, devclustertest.Shared(t)), newSocket(t)
	limited := devclustertest.Limited(t, f.cluster, f.ns)
	link := devclustertest.Proxy(t, f.cluster)
	user := f.newUser(limited)
	user.grant()
	c := f.start("--kubeconfig", writeKubeconfig(t, link.Through(limited)), "--socket", socket)
	f.settled()
	user.revoke()
	link.Cut() // an open watch goes on without rights
	f.away()
	for _, resource := range []string{"webapps", "deployments", "services"} {
		if w := awaitPhase(t, socket, resource, "denied"); !strings.Contains(w.Message, "forbidden") {
			t.Errorf("the watch of %s says %q", resource, w.Message)
		}
		c.wantLine(`"msg":"watch denied"`, resource, "forbidden")
	}
	if text := steer(t, "status", socket); !strings.Contains(text, "denied") {
		t.Errorf("status does not say that the watch is denied: %s", text)
	}
	user.grant()
	f.confirm()
	awaitPhase(t, socket, "webapps", "ready")
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	wantNoneTwice(t, c.runs())
}

// user is a service account whose rights come and go.
type user struct {
	f       *fleet
	admin   kubernetes.Interface
	limited kubernetes.Interface
	subject rbacv1.Subject
}

func (f *fleet) newUser(limited *rest.Config) *user {
	f.t.Helper()
	admin, err := kubernetes.NewForConfig(f.admin())
	if err != nil {
		f.t.Fatal(err)
	}
	mine, err := kubernetes.NewForConfig(limited)
	if err != nil {
		f.t.Fatal(err)
	}
	return &user{f: f, admin: admin, limited: mine, subject: rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: whoAmI(f.t, mine)}}
}

// grant gives all rights in the namespace.
func (u *user) grant() {
	t, roles, bindings := u.f.t, u.admin.RbacV1().Roles(u.f.ns), u.admin.RbacV1().RoleBindings(u.f.ns)
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

// revoke takes them away, and returns when they have gone.
func (u *user) revoke() {
	t := u.f.t
	t.Helper()
	for _, err := range []error{
		u.admin.RbacV1().RoleBindings(u.f.ns).Delete(t.Context(), "all", metav1.DeleteOptions{}),
		u.admin.RbacV1().Roles(u.f.ns).Delete(t.Context(), "all", metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Until(t, "the rights are gone", func() bool { return apierrors.IsForbidden(u.denied()) })
}

func (u *user) denied() error {
	_, err := u.limited.CoreV1().Services(u.f.ns).List(u.f.t.Context(), metav1.ListOptions{Limit: 1})
	return err
}

// TestChaos_KindDeletedAndMadeAgain: a CustomResourceDefinition goes, with all
// its objects, and comes again: the watch is absent in between, and the new
// objects are reconciled, though some have the names of old ones.
func TestChaos_KindDeletedAndMadeAgain(t *testing.T) {
	t.Parallel()
	f, socket := newFleet(t, devclustertest.Own(t)), newSocket(t)
	c := f.start("--socket", socket)
	f.settled()
	crds := f.client.Resource(customResourceDefinitions)
	if err := crds.Delete(t.Context(), "webapps.examples.wasmctl.dev", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, socket, "webapps", "absent")
	c.wantLine(`"msg":"watch absent"`, "webapps")
	devclustertest.ApplyFile(t, f.cluster, "../../examples/webapp/crd.yaml")
	f.mu.Lock()
	clear(f.want) // nothing of before is left
	f.mu.Unlock()
	for i := range 5 {
		f.put(t.Context(), fmt.Sprint("new", i), app{image: "i:new", port: true})
	}
	f.put(t.Context(), "same", app{image: "i:again"})
	f.put(t.Context(), "gone", app{image: "i:again", port: true})
	f.confirm()
	awaitPhase(t, socket, "webapps", "ready")
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	wantNoneTwice(t, c.runs())
}
