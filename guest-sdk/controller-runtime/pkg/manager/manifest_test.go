// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TestManifest_SaysWhatTheBuilderSays checks that the manifest has the watches,
// owners, named predicates, concurrency, namespaces and event rights of the
// manager.
func TestManifest_SaysWhatTheBuilderSays(t *testing.T) {
	m := newManager(t, ctrl.Options{Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{"b": {}, "a": {}}}})
	m.GetEventRecorderFor("x")
	b := ctrl.NewControllerManagedBy(m).Named("web").
		For(&corev1.ConfigMap{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Owns(&appsv1.Deployment{}, builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Owns(&corev1.Secret{}, builder.MatchEveryOwner, builder.OnlyMetadata).
		Watches(&corev1.Service{}, handler.EnqueueRequestForOwner(m.GetScheme(), m.GetRESTMapper(), &corev1.ConfigMap{})).
		WithEventFilter(predicate.ResourceVersionChangedPredicate{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 3})
	must(t, b.Complete(nothing))
	got := declared(t, m).Manifest
	ns := []string{"a", "b"}
	want := wasmctl.Manifest{
		Name: "web", Concurrency: 3,
		For: &wasmctl.Watch{Version: "v1", Kind: "ConfigMap", Deletes: true, Namespaces: ns, Predicates: []string{"all(resourceVersion, any(generation, labels))"}},
		Owns: []wasmctl.Watch{
			{Group: "apps", Version: "v1", Kind: "Deployment", ControllerOnly: true, Namespaces: ns, Predicates: []string{"all(resourceVersion, annotations)"}},
			{Version: "v1", Kind: "Secret", MetadataOnly: true, Namespaces: ns, Predicates: []string{"resourceVersion"}},
			{Version: "v1", Kind: "Service", Namespaces: ns, Predicates: []string{"resourceVersion"}},
		},
		Capabilities: []wasmctl.Capability{{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// TestManifest_OwnedObjectsWithoutANamespaceAreMapped: the host refuses
// cluster-scoped objects under a namespaced owner, which native programs
// ignore.
func TestManifest_OwnedObjectsWithoutANamespaceAreMapped(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	must(t, ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Owns(&corev1.Node{}).Complete(nothing))
	got := declared(t, m).Manifest
	if len(got.Owns) != 0 || len(got.Watches) != 1 || got.Watches[0].Kind != "Node" || got.Watches[0].Mapper == nil {
		t.Errorf("owns %+v, watches %+v", got.Owns, got.Watches)
	}
}

// TestManifest_AHandlerOfTheProgramForItsOwnKind: a controller without For
// reconciles the first kind that is not built in, for the events for which the
// handler enqueues the object and which the predicates accept.
func TestManifest_AHandlerOfTheProgramForItsOwnKind(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	part := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "parts.example.com", Version: "v1", Kind: "Part"})
		u.SetName(name)
		return u
	}
	skips := handler.Funcs{CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: strings.TrimPrefix(e.Object.GetName(), "skip-")}})
	}}
	never := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() != "never" })
	b := ctrl.NewControllerManagedBy(m).Named("parts").WatchesRawSource(source.Kind[client.Object](m.GetCache(), &corev1.Pod{}, skips))
	must(t, b.WatchesRawSource(source.Kind[client.Object](m.GetCache(), part(""), skips, never)).Complete(nothing))
	r := declared(t, m)
	got := r.Manifest
	if got.For.Kind != "Part" || !got.For.Deletes || len(got.Watches) != 1 || got.Watches[0].Kind != "Pod" {
		t.Fatalf("for %+v, watches %+v", got.For, got.Watches)
	}
	for name, want := range map[string]bool{"a": true, "skip-a": false, "never": false} {
		e := wasmctl.WatchEvent{Type: wasmctl.WatchUpdated, Key: wasmctl.ObjectKey{Name: name}, New: object(t, part(name).Object)}
		if got.For.Filter(&wasmctl.Context{}, e) != want {
			t.Errorf("%s passes: %t", name, !want)
		}
	}
}

// TestManifest_TheOnlyWatchedKindIsReconciled: also a kind of Kubernetes, for the objects that the map
// function returns for themselves.
func TestManifest_TheOnlyWatchedKindIsReconciled(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	lower := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: strings.ToLower(o.GetName())}}}
	}
	must(t, ctrl.NewControllerManagedBy(m).Named("dns").Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(lower)).Complete(nothing))
	got := declared(t, m).Manifest
	if got.For == nil || got.For.Kind != "Service" || len(got.Watches) > 0 {
		t.Fatalf("for %+v, watches %+v", got.For, got.Watches)
	}
	for name, want := range map[string]bool{"a": true, "A": false} {
		e := wasmctl.WatchEvent{Type: wasmctl.WatchUpdated, Key: wasmctl.ObjectKey{Name: name}, New: object(t, map[string]any{"metadata": map[string]any{"name": name}})}
		if got.For.Filter(&wasmctl.Context{}, e) != want {
			t.Errorf("%s passes: %t", name, !want)
		}
	}
}

// TestManifest_AWatchThatMainAsksForIsOptional covers kinds that an API server
// may lack, except for the reconciled kind.
func TestManifest_AWatchThatMainAsksForIsOptional(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	part, other := schema.GroupVersionKind{Group: "parts.example.com", Version: "v1", Kind: "Part"}, schema.GroupVersionKind{Group: "parts.example.com", Version: "v1", Kind: "Other"}
	b := ctrl.NewControllerManagedBy(m)
	for i, gvk := range []schema.GroupVersionKind{part, other, appsv1.SchemeGroupVersion.WithKind("Deployment"), part} {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		if gvk != other {
			_, err := m.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
			must(t, err)
		}
		if i == 0 {
			b.For(u)
			continue
		}
		b.Owns(u)
	}
	must(t, b.Complete(nothing))
	got := declared(t, m).Manifest
	if got.For.Optional || got.Owns[0].Optional || got.Owns[1].Optional || !got.Owns[2].Optional {
		t.Errorf("for %+v, owns %+v", got.For, got.Owns)
	}
}

// TestManifest_OwnPredicatesAreAFilter: the module evaluates predicates that
// the host does not know, in addition to the known ones. A type that embeds a
// standard predicate is a different predicate.
func TestManifest_OwnPredicatesAreAFilter(t *testing.T) {
	type ours struct {
		predicate.GenerationChangedPredicate
	}
	if _, ok := predicate.Element(ours{}); ok {
		t.Error("a type that embeds GenerationChangedPredicate counts as it")
	}
	m := newManager(t, ctrl.Options{})
	named := predicate.NewPredicateFuncs(func(o client.Object) bool { return strings.HasPrefix(o.GetName(), "keep") })
	must(t, ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}, builder.WithPredicates(predicate.And(predicate.GenerationChangedPredicate{}, named))).Complete(nothing))
	r := declared(t, m)
	if p := r.Manifest.For.Predicates; !reflect.DeepEqual(p, []string{"generation"}) || r.Manifest.For.Filter == nil {
		t.Fatalf("predicates %q, filter %t", p, r.Manifest.For.Filter != nil)
	}
	host := guesttest.New(t)
	for name, want := range map[string]bool{"keep-a": true, "other": false} {
		e := wasmctl.WatchEvent{Type: wasmctl.WatchUpdated, Version: "v1", Kind: "ConfigMap", Key: wasmctl.ObjectKey{Namespace: "default", Name: name}, New: object(t, configMap(name))}
		if got := host.Filter(r, e); got != want {
			t.Errorf("%s: kept %t, want %t", name, got, want)
		}
	}
}

func object(t *testing.T, v any) wasmctl.Object {
	t.Helper()
	value, err := wasmctl.NewValue(v)
	must(t, err)
	return wasmctl.Object{Value: value}
}

// TestManifest_HandlersOfAKindAreOneMapper: the keys are the requests that
// several handlers add for one event, each with its own predicates. An update
// concerns the old and the new object.
func TestManifest_HandlersOfAKindAreOneMapper(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	byLabel := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()["app"]}}}
	})
	never := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	must(t, ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, byLabel).
		Watches(&corev1.Secret{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(never)).
		Complete(nothing))
	r := declared(t, m)
	if n := len(r.Manifest.Watches); n != 1 {
		t.Fatalf("%d watches", n)
	}
	e := wasmctl.WatchEvent{
		Type: wasmctl.WatchUpdated, Version: "v1", Kind: "Secret", Key: wasmctl.ObjectKey{Namespace: "default", Name: "s"},
		Old: object(t, secret("s", "x", map[string]string{"app": "old"})), New: object(t, secret("s", "x", map[string]string{"app": "new"})),
	}
	keys, err := guesttest.New(t).Map(r, e)
	want := []wasmctl.ObjectKey{{Namespace: "default", Name: "old"}, {Namespace: "default", Name: "new"}}
	if err != nil || !reflect.DeepEqual(keys, want) {
		t.Errorf("%v, %v; want %v", keys, err, want)
	}
	e.Old = wasmctl.Object{}
	keys, err = guesttest.New(t).Map(r, e)
	want = []wasmctl.ObjectKey{{Namespace: "default", Name: "new"}, {Namespace: "default", Name: "s"}}
	if err != nil || !reflect.DeepEqual(keys, want) {
		t.Errorf("of a new one: %v, %v; want %v", keys, err, want)
	}
}

// TestManager_SaysWhatAModuleCannotHave checks that each error names the
// unsupported feature.
func TestManager_SaysWhatAModuleCannotHave(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(m ctrl.Manager) error
		want string
	}{
		"a channel": {func(m ctrl.Manager) error {
			return withSource(m, source.Channel(make(chan event.GenericEvent), &handler.EnqueueRequestForObject{}))
		}, "source.Channel"},
		"no For": {func(m ctrl.Manager) error {
			return ctrl.NewControllerManagedBy(m).Owns(&corev1.Pod{}).Named("x").Complete(nothing)
		}, "Owns needs For"},
		"two For": {func(m ctrl.Manager) error {
			return ctrl.NewControllerManagedBy(m).For(&corev1.Pod{}).For(&corev1.Pod{}).Complete(nothing)
		}, "For was called twice"},
		"unknown type": {func(m ctrl.Manager) error {
			return ctrl.NewControllerManagedBy(m).For(&metav1.PartialObjectMetadata{}).Complete(nothing)
		}, "no kind"},
	} {
		if err := c.set(newManager(t, ctrl.Options{})); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}

func withSource(m ctrl.Manager, s source.Source) error {
	return ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).WatchesRawSource(s).Complete(nothing)
}

// TestManager_TheNameChoosesTheController: a module with several controllers
// runs the one with its name, and the error lists all names.
func TestManager_TheNameChoosesTheController(t *testing.T) {
	m := newManager(t, ctrl.Options{})
	must(t, ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Named("maps").Complete(nothing))
	if r, err := manager.Reconciler(m, "whatever"); err != nil || r.Manifest.Name != "maps" {
		t.Errorf("the only one: %v, %v", r.Manifest.Name, err)
	}
	must(t, ctrl.NewControllerManagedBy(m).For(&corev1.Secret{}).Complete(nothing))
	if r, err := manager.Reconciler(m, "secret"); err != nil || r.Manifest.For.Kind != "Secret" {
		t.Errorf("by its name: %v, %v", r.Manifest.For, err)
	}
	if _, err := manager.Reconciler(m, "whatever"); err == nil || !strings.Contains(err.Error(), "maps, secret") {
		t.Errorf("of another name: %v", err)
	}
}
