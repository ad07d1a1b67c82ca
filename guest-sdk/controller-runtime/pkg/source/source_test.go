// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/internal/declare"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func declared(t *testing.T, s any) (declare.Watch, error) {
	t.Helper()
	d, ok := s.(declare.Source)
	if !ok {
		t.Fatalf("%T cannot be declared", s)
	}
	return d.Declared()
}

// The handlers and predicates of a typed source receive objects of that type.
func TestKind_HandlersGetTheirType(t *testing.T) {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(q queue, p *corev1.Pod) {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: p.Spec.NodeName}})
	}
	w, err := declared(t, source.Kind(nil, &corev1.Pod{}, handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Pod], q queue) { enqueue(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Pod], q queue) { enqueue(q, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], q queue) { enqueue(q, e.Object) },
	}, predicate.NewTypedPredicateFuncs(func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })))
	if err != nil {
		t.Fatal(err)
	}
	pod := func(node string) client.Object { return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}} }
	q := &controllertest.Queue{TypedInterface: workqueue.NewTyped[reconcile.Request]()}
	w.Handler.Create(t.Context(), event.CreateEvent{Object: pod("a")}, q)
	w.Handler.Update(t.Context(), event.UpdateEvent{ObjectOld: pod("x"), ObjectNew: pod("b")}, q)
	w.Handler.Delete(t.Context(), event.DeleteEvent{Object: pod("c")}, q)
	for _, want := range []string{"a", "b", "c"} {
		if got, _ := q.Get(); got.Name != want {
			t.Errorf("%s, want %s", got.Name, want)
		}
	}
	p := w.Predicates[0]
	if p.Create(event.CreateEvent{Object: pod("")}) || !p.Delete(event.DeleteEvent{Object: pod("a")}) || !p.Update(event.UpdateEvent{ObjectOld: pod(""), ObjectNew: pod("a")}) {
		t.Error("the predicate")
	}
}

// A handler that enqueues each object itself is recognized, so that its kind
// becomes the reconciled kind.
func TestKind_ForObjectIsKnown(t *testing.T) {
	w, err := declared(t, source.Kind(nil, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}))
	if _, ok := w.Handler.(*handler.EnqueueRequestForObject); !ok || err != nil {
		t.Errorf("%T %v", w.Handler, err)
	}
}

// A source that a module does not support returns an error with the reason, and
// so does a source without a kind.
func TestSources_SayWhatAModuleCannotHave(t *testing.T) {
	if _, err := declared(t, source.Kind(nil, (*corev1.Pod)(nil), &handler.TypedEnqueueRequestForObject[*corev1.Pod]{})); err == nil {
		t.Error("a source of nil")
	}
	if _, err := declared(t, source.Channel(make(chan event.GenericEvent), &handler.EnqueueRequestForObject{})); err == nil {
		t.Error("a channel")
	}
	if _, err := declared(t, source.TypedKind(nil, &corev1.Pod{}, handler.TypedFuncs[*corev1.Pod, string]{})); err == nil {
		t.Error("requests that are no names")
	}
	if err := (&source.Informer{}).Start(t.Context(), nil); err == nil {
		t.Error("an informer")
	}
}
