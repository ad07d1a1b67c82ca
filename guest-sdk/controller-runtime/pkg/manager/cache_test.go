// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// wrapped is a cache that a program has wrapped.
type wrapped struct{ cache.Cache }

// TestManager_NewCacheBoundsTheHostsCache checks that the options given to
// cache.New restrict the watches, even if NewCache returns a wrapper. No cache
// and two caches are errors.
func TestManager_NewCacheBoundsTheHostsCache(t *testing.T) {
	for calls := range 3 {
		o := ctrl.Options{NewCache: func(cfg *rest.Config, o cache.Options) (c cache.Cache, err error) {
			o.DefaultNamespaces = map[string]cache.Config{"shop": {}}
			for range calls {
				if c, err = cache.New(cfg, o); err != nil {
					return nil, err
				}
			}
			return wrapped{c}, nil
		}}
		if calls != 1 {
			if _, err := ctrl.NewManager(ctrl.GetConfigOrDie(), o); err == nil {
				t.Errorf("%d caches are no error", calls)
			}
			continue
		}
		m := newManager(t, o)
		must(t, ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(nothing))
		manifest := declared(t, m).Manifest
		for _, got := range [][]string{manifest.For.Namespaces, manifest.Owns[0].Namespaces} {
			if !slices.Equal(got, []string{"shop"}) {
				t.Errorf("namespaces %q", got)
			}
		}
		if _, ok := m.GetCache().(wrapped); !ok {
			t.Errorf("the cache is a %T", m.GetCache())
		}
	}
}

// TestCache_OneBesideTheManagersReadsWithinItsBounds checks that the
// restrictions of the manager's cache do not apply to a separate cache, and
// that watches through it are unrestricted.
func TestCache_OneBesideTheManagersReadsWithinItsBounds(t *testing.T) {
	a, b := map[string]string{"l": "1"}, map[string]string{"l": "2"}
	_, result := in(t, func(ctx context.Context, m ctrl.Manager, _ client.Client) {
		own, err := cache.New(m.GetConfig(), cache.Options{Scheme: m.GetScheme(), DefaultLabelSelector: labels.SelectorFromSet(a)})
		must(t, err)
		must(t, own.IndexField(ctx, &corev1.Secret{}, "type", func(o client.Object) []string {
			return []string{string(o.(*corev1.Secret).Type)} //nolint:forcetypeassert // the type of the index
		}))
		c, err := client.New(m.GetConfig(), client.Options{Scheme: m.GetScheme(), Cache: &client.CacheOptions{Reader: own}})
		must(t, err)
		var s corev1.Secret
		must(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "p"}, &s))
		if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "r"}, &s); !apierrors.IsNotFound(err) {
			t.Errorf("an object with other labels: %v", err)
		}
		for want, opts := range map[int][]client.ListOption{
			2: {}, 1: {client.MatchingFields{"type": "y"}}, 0: {client.MatchingLabels(b)},
		} {
			var list corev1.SecretList
			if must(t, c.List(ctx, &list, opts...)); len(list.Items) != want {
				t.Errorf("%v: %d, want %d", opts, len(list.Items), want)
			}
		}
	}, secret("p", "x", a), secret("q", "y", a), secret("r", "y", b))
	fine(t, result)

	m := newManager(t, ctrl.Options{Cache: cache.Options{DefaultLabelSelector: labels.SelectorFromSet(b)}})
	own, err := cache.New(m.GetConfig(), cache.Options{Scheme: m.GetScheme()})
	must(t, err)
	must(t, m.Add(own))
	must(t, ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).
		WatchesRawSource(source.Kind(own, &corev1.Secret{}, &handler.TypedEnqueueRequestForObject[*corev1.Secret]{})).Complete(nothing))
	manifest := declared(t, m).Manifest
	if manifest.For.LabelSelector != "l=2" || manifest.Watches[0].LabelSelector != "" {
		t.Errorf("selectors %q and %q", manifest.For.LabelSelector, manifest.Watches[0].LabelSelector)
	}
}

// TestClient_ObjectsOfACacheSayTheirKind: in native programs all kinds are
// cached, so objects that a module reads from the API server instead must have
// their kind, too.
func TestClient_ObjectsOfACacheSayTheirKind(t *testing.T) {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
	_, result := in(t, func(ctx context.Context, _ ctrl.Manager, c client.Client) {
		var p corev1.Pod
		must(t, c.Get(ctx, client.ObjectKeyFromObject(pod), &p))
		var list corev1.PodList
		must(t, c.List(ctx, &list, client.InNamespace("default")))
		if len(list.Items) != 1 || list.Items[0].TypeMeta != pod.TypeMeta || p.TypeMeta != pod.TypeMeta {
			t.Errorf("one is a %+v, of a list: %+v", p.TypeMeta, list.Items)
		}
	}, pod)
	fine(t, result)
}

// TestInformer_TakesNoHandlers checks that an informer has synced, and that
// handlers are errors that name the next step, also in a source.
func TestInformer_TakesNoHandlers(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	i, err := m.GetCache().GetInformer(t.Context(), &corev1.Pod{})
	must(t, err)
	if !i.HasSynced() || i.IsStopped() {
		t.Error("the informer of Pods has not synced, or is stopped")
	}
	h := toolscache.ResourceEventHandlerFuncs{}
	_, plain := i.AddEventHandler(h)
	_, resyncs := i.AddEventHandlerWithResyncPeriod(h, time.Hour)
	_, with := i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
	for _, err := range []error{plain, resyncs, with} {
		if err == nil || !strings.Contains(err.Error(), "informer[Pod]") || !strings.Contains(err.Error(), "--without sources") {
			t.Errorf("a handler: %v", err)
		}
	}
	if err := i.AddIndexers(toolscache.Indexers{}); err == nil || !strings.Contains(err.Error(), "IndexField") {
		t.Errorf("an indexer: %v", err)
	}
	must(t, i.RemoveEventHandler(nil))
}

// TestClient_OfAnotherClusterIsAnError includes impersonation of another user.
// A module has the cluster and the rights of its host.
func TestClient_OfAnotherClusterIsAnError(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	other := rest.CopyConfig(m.GetConfig())
	_, err := client.New(other, client.Options{Scheme: m.GetScheme()})
	must(t, err)
	other.Impersonate.UserName = "bob"
	for _, cfg := range []*rest.Config{{Host: "https://other.example"}, other} {
		if _, err := client.New(cfg, client.Options{Scheme: m.GetScheme()}); err == nil {
			t.Errorf("%s is no error", cfg.Host)
		}
		if _, err := cache.New(cfg, cache.Options{Scheme: m.GetScheme()}); err == nil {
			t.Errorf("a cache: %s is no error", cfg.Host)
		}
	}
}
