// SPDX-License-Identifier: Apache-2.0

package devclustertest

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/devcluster"
)

func TestMain(m *testing.M) { Main(m) }

func createConfigMap(ctx context.Context, t *testing.T, rc *rest.Config, namespace, name string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := clientset(t, rc).CoreV1().ConfigMaps(namespace).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create configmap %s: %v", name, err)
	}
}

func TestShared_IsOneForAll(t *testing.T) {
	want := Shared(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := Shared(t); got != want {
				t.Errorf("another control plane, %s", got.URL())
			}
		})
	}
	wg.Wait()
	if got := Admin(t).Host; got != want.URL() {
		t.Errorf("Admin is for %s, want %s", got, want.URL())
	}
}

func TestBinary_MissingNamesTheNextStep(t *testing.T) {
	t.Chdir(t.TempDir()) // no go.mod above it
	t.Setenv(devcluster.EnvBinary, "")
	t.Setenv("PATH", t.TempDir())
	_, err := findBinary()
	if err == nil || !strings.Contains(err.Error(), "make devcluster") {
		t.Errorf("without the program: %v, want 'make devcluster' in it", err)
	}
}

func TestNamespace_IsNewAndGoesWithTheTest(t *testing.T) {
	c := Shared(t)
	client := clientset(t, c.RESTConfig()).CoreV1().Namespaces()
	var names []string
	t.Run("A/Very Long_Name+"+strings.Repeat("x", 80), func(t *testing.T) {
		names = append(names, Namespace(t, c), Namespace(t, c))
	})
	if names[0] == names[1] {
		t.Errorf("both are called %s", names[0])
	}
	for _, name := range names {
		ns, err := client.Get(t.Context(), name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			t.Error(err)
		case ns.DeletionTimestamp == nil:
			t.Errorf("namespace %s lives on after its test", name)
		}
	}
}

var readConfigMaps = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}

// wantAccess checks the client's permission: nil for allowed, or 403.
func wantAccess(t *testing.T, what string, err error, allowed bool) {
	t.Helper()
	if allowed && err != nil {
		t.Errorf("%s: %v, want it allowed", what, err)
	}
	if !allowed && !apierrors.IsForbidden(err) {
		t.Errorf("%s: %v, want 403", what, err)
	}
}

func listConfigMaps(t *testing.T, c kubernetes.Interface, namespace string) error {
	t.Helper()
	_, err := c.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	return err
}

func TestLimited_MayDoItsRulesInItsNamespaceOnly(t *testing.T) {
	c := Shared(t)
	ns := Namespace(t, c)
	limited := clientset(t, Limited(t, c, ns, readConfigMaps))
	wantAccess(t, "list configmaps", listConfigMaps(t, limited, ns), true)
	wantAccess(t, "list configmaps elsewhere", listConfigMaps(t, limited, "default"), false)
	_, err := limited.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{})
	wantAccess(t, "list secrets", err, false)
	_, err = limited.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	wantAccess(t, "create a configmap", err, false)

	none := clientset(t, Limited(t, c, ns))
	wantAccess(t, "list configmaps without rules", listConfigMaps(t, none, ns), false)
}

// Every form of a rule must be checked in a way that RBAC can grant; otherwise, Limited would wait forever.
func TestLimited_TakesEveryShapeOfRule(t *testing.T) {
	c := Shared(t)
	for name, rule := range map[string]rbacv1.PolicyRule{
		"all":         {APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		"subresource": {APIGroups: []string{"apps"}, Resources: []string{"deployments/status"}, Verbs: []string{"update"}},
		"named":       {APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}, ResourceNames: []string{"one"}},
	} {
		t.Run(name, func(t *testing.T) { Limited(t, c, Namespace(t, c), rule) })
	}
}

func TestLimitedClusterWide_MayDoItsRulesEverywhere(t *testing.T) {
	c := Shared(t)
	limited := clientset(t, LimitedClusterWide(t, c, readConfigMaps,
		rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}))
	wantAccess(t, "list configmaps of all namespaces", listConfigMaps(t, limited, ""), true)
	_, err := limited.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	wantAccess(t, "list namespaces", err, false)
	err = limited.Discovery().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Error()
	wantAccess(t, "get /metrics", err, true)
}
