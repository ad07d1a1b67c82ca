// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// nothing is a reconciler without an effect.
var nothing = reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
})

func newManager(t *testing.T, o ctrl.Options) ctrl.Manager {
	t.Helper()
	o.Scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(o.Scheme); err != nil {
			t.Fatal(err)
		}
	}
	m, err := ctrl.NewManager(ctrl.GetConfigOrDie(), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// declared returns the reconciler of a manager with one controller.
func declared(t *testing.T, m ctrl.Manager) wasmctl.Reconciler {
	t.Helper()
	r, err := manager.Reconciler(m, "any")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// in runs f as the Reconcile function for the ConfigMap default/a, on a host
// with the objects. ConfigMaps and Secrets are watched, and all rights are
// granted.
func in(t *testing.T, f func(ctx context.Context, m ctrl.Manager, c client.Client), objects ...any) (*guesttest.Host, guesttest.Result) {
	t.Helper()
	return with(t, ctrl.Options{}, f, objects...)
}

// with is in for a manager with options.
func with(t *testing.T, o ctrl.Options, f func(ctx context.Context, m ctrl.Manager, c client.Client), objects ...any) (*guesttest.Host, guesttest.Result) {
	t.Helper()
	m := newManager(t, o)
	r := reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		f(ctx, m, m.GetClient())
		return reconcile.Result{}, nil
	})
	if err := m.GetFieldIndexer().IndexField(t.Context(), &corev1.Secret{}, "type", func(o client.Object) []string {
		return []string{string(o.(*corev1.Secret).Type)} //nolint:forcetypeassert // the type of the index
	}); err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(r); err != nil {
		t.Fatal(err)
	}
	rec := declared(t, m)
	for group, resources := range map[string][]string{"": {"configmaps", "secrets", "pods", "nodes"}, "apps": {"deployments"}} {
		for _, resource := range resources {
			rec.Manifest.Capabilities = append(rec.Manifest.Capabilities,
				wasmctl.Capability{Group: group, Resource: resource, Verbs: []string{"*"}},
				wasmctl.Capability{Group: group, Resource: resource, Subresources: []string{"status"}, Verbs: []string{"*"}})
		}
	}
	host := guesttest.New(t, append(objects, configMap("a"))...)
	return host, host.Reconcile(rec, wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "a"})
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
	}
}

func secret(name string, typ corev1.SecretType, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}, Type: typ,
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
