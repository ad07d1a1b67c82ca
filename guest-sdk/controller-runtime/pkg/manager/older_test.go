// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestManager_BoundsOfVersion015Count: each way to name namespaces restricts
// the watches, and the newer options take precedence.
func TestManager_BoundsOfVersion015Count(t *testing.T) {
	for name, o := range map[string]ctrl.Options{
		"Namespace":                   {Namespace: "shop"},
		"Cache.Namespaces":            {Cache: cache.Options{Namespaces: []string{"shop"}}},
		"MultiNamespacedCacheBuilder": {NewCache: cache.MultiNamespacedCacheBuilder([]string{"shop"})},
		"DefaultNamespaces":           {Namespace: "x", Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{"shop": {}}}},
	} {
		m := newManager(t, o)
		must(t, ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(nothing))
		if got := declared(t, m).Manifest.For.Namespaces; !slices.Equal(got, []string{"shop"}) {
			t.Errorf("%s: namespaces %q", name, got)
		}
	}
}

// TestManager_ClientOptionsOfVersion015Count: uncached kinds are read from the
// API server, and a dry run stores nothing.
func TestManager_ClientOptionsOfVersion015Count(t *testing.T) {
	o := ctrl.Options{ClientDisableCacheFor: []client.Object{&corev1.Secret{}}, DryRunClient: true}
	host, result := with(t, o, func(ctx context.Context, _ ctrl.Manager, c client.Client) {
		must(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "p"}, &corev1.Secret{}))
		must(t, c.Create(ctx, secret("new", "x", nil)))
	}, secret("p", "x", nil))
	fine(t, result)
	if op := host.Calls()[0].Op; op != "api_get" {
		t.Errorf("the Secret was read by %s", op)
	}
	if host.Get(wasmctl.ObjectRef{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "new"}).Exists() {
		t.Error("a dry run has stored an object")
	}
}
