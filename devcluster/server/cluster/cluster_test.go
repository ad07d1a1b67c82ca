// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// running is a control plane inside the test's process.
type running struct {
	info   Info
	client kubernetes.Interface
	cancel context.CancelFunc
	ended  chan error
}

func start(t *testing.T, cfg Config) *running {
	t.Helper()
	cfg.UnsafeNoFsync = true
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel: cancel, ended: make(chan error, 1)}
	ready := make(chan Info, 1)
	go func() { r.ended <- Run(ctx, cfg, func(i Info) { ready <- i }) }()
	select {
	case r.info = <-ready:
	case err := <-r.ended:
		cancel()
		t.Fatalf("Run: %v", err)
	}
	t.Cleanup(func() { r.stop(t) })
	rc, err := clientcmd.BuildConfigFromFlags("", r.info.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	rc.QPS = -1
	if r.client, err = kubernetes.NewForConfig(rc); err != nil {
		t.Fatal(err)
	}
	return r
}

// stop stops the control plane; a second call does nothing.
func (r *running) stop(t *testing.T) {
	t.Helper()
	if r.cancel == nil {
		return
	}
	r.cancel()
	r.cancel = nil
	if err := <-r.ended; err != nil {
		t.Errorf("stop: %v", err)
	}
}

func (r *running) create(t *testing.T, name string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := r.client.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create configmap %s: %v", name, err)
	}
}

// eventually fails the test unless check returns nil within a time limit.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Errorf("%s: %v (last: %v)", what, err, last)
	}
}

func TestRun_StartsAgainInOneProcess(t *testing.T) {
	for i := range 2 {
		r := start(t, Config{NoControllers: true})
		r.create(t, fmt.Sprint("a", i))
		dir := filepath.Dir(r.info.Kubeconfig)
		r.stop(t)
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("private data dir %s after the stop: %v, want it gone", dir, err)
		}
	}
}

func TestRun_RestartKeepsObjectsAndKeys(t *testing.T) {
	dir := t.TempDir()
	first := start(t, Config{DataDir: dir, NoControllers: true})
	first.create(t, "kept")
	before, err := os.ReadFile(filepath.Join(dir, "pki", caCert))
	if err != nil {
		t.Fatal(err)
	}
	first.stop(t)

	second := start(t, Config{DataDir: dir, NoControllers: true})
	if _, err := second.client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, "pki", caCert))
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("the restart made a new CA: old kubeconfigs no longer work")
	}
}

func TestRun_TwoSideBySide(t *testing.T) {
	a, b := start(t, Config{NoControllers: true}), start(t, Config{NoControllers: true})
	if a.info.URL == b.info.URL {
		t.Fatalf("both at %s", a.info.URL)
	}
	a.create(t, "only-in-a")
	_, err := b.client.CoreV1().ConfigMaps("default").Get(t.Context(), "only-in-a", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("b sees what was made in a: %v", err)
	}
}

func TestRun_StopBeforeReadyIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Run(ctx, Config{NoControllers: true}, func(Info) { t.Error("ready, though it was stopped before") })
	if err == nil {
		t.Error("Run on an ended context: no error, so its caller takes it for an ordered stop")
	}
}

// TestControllers_DoTheirWork checks the essential function of each controller.
func TestControllers_DoTheirWork(t *testing.T) {
	c := start(t, Config{}).client
	core := c.CoreV1()

	ns, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "work-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "service accounts: default account", func(ctx context.Context) error {
		_, err := core.ServiceAccounts(ns.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	eventually(t, "root CA publisher: config map", func(ctx context.Context) error {
		_, err := core.ConfigMaps(ns.Name).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
	eventually(t, "role aggregation: rules of edit", func(ctx context.Context) error {
		role, err := c.RbacV1().ClusterRoles().Get(ctx, "edit", metav1.GetOptions{})
		if err == nil && len(role.Rules) == 0 {
			err = fmt.Errorf("no rules")
		}
		return err
	})
	testOwnerCollected(t, c, ns.Name)
	if err := core.Namespaces().Delete(t.Context(), ns.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "namespaces: deletion", func(ctx context.Context) error {
		_, err := core.Namespaces().Get(ctx, ns.Name, metav1.GetOptions{})
		return wantNotFound(err)
	})
}

// testOwnerCollected deletes an owner and waits until its child is deleted.
func testOwnerCollected(t *testing.T, c kubernetes.Interface, ns string) {
	t.Helper()
	roles := c.RbacV1().Roles(ns)
	owner, err := roles.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	child := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "child", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role", Name: owner.Name, UID: owner.UID},
	}}}
	if _, err := roles.Create(t.Context(), child, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := roles.Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "garbage collector: child of a deleted owner", func(ctx context.Context) error {
		_, err := roles.Get(ctx, "child", metav1.GetOptions{})
		return wantNotFound(err)
	})
}

func wantNotFound(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("still there")
	}
	return err
}
