// SPDX-License-Identifier: Apache-2.0

package handler_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/internal/kinds"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// added collects the items added to a queue.
type added struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	names []string
}

// Add implements workqueue.TypedInterface.
func (a *added) Add(r reconcile.Request) { a.names = append(a.names, r.String()) }

func owned(refs ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", OwnerReferences: refs}}
}

func ref(apiVersion, kind, name string, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &controller}
}

// TestOwner_GroupAndKindCount checks that the version of an owner is ignored,
// an update concerns old and new owners, each once, cluster-scoped owners have
// no namespace, and the option skips owners that do not control.
func TestOwner_GroupAndKindCount(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := kinds.NewMapper(scheme)
	was := owned(ref("v1", "ConfigMap", "a", true), ref("v1", "ConfigMap", "b", false))
	now := owned(ref("v9", "ConfigMap", "a", false), ref("other/v1", "ConfigMap", "x", false), ref("v1", "Secret", "y", false),
		ref("rbac.authorization.k8s.io/v1", "ClusterRole", "role", false))
	for name, c := range map[string]struct {
		owner client.Object
		opts  []handler.OwnerOption
		want  []string
	}{
		"all":            {&corev1.ConfigMap{}, nil, []string{"ns/a", "ns/b"}},
		"the controller": {&corev1.ConfigMap{}, []handler.OwnerOption{handler.OnlyControllerOwner()}, []string{"ns/a"}},
		"of the cluster": {&rbacv1.ClusterRole{}, nil, []string{"/role"}},
	} {
		q := &added{}
		h := handler.EnqueueRequestForOwner(scheme, mapper, c.owner, c.opts...)
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: now}, q)
		if !slices.Equal(q.names, c.want) {
			t.Errorf("%s: %q, want %q", name, q.names, c.want)
		}
		if gvk, controller, ok := handler.Owner(h); !ok || gvk.Kind == "" || controller != (c.opts != nil) {
			t.Errorf("%s: as declared: %v, %t, %t", name, gvk, controller, ok)
		}
	}
}

// TestForObject_IsTheObjectOfEachEvent includes events of objects that are
// gone. For an update, it is the new object.
func TestForObject_IsTheObjectOfEachEvent(t *testing.T) {
	h, q, p := &handler.EnqueueRequestForObject{}, &added{}, owned()
	h.Create(t.Context(), event.CreateEvent{Object: p}, q)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: p, ObjectNew: p}, q)
	h.Delete(t.Context(), event.DeleteEvent{Object: p}, q)
	h.Generic(t.Context(), event.GenericEvent{Object: p}, q)
	h.Update(t.Context(), event.UpdateEvent{}, q)
	renamed := owned()
	renamed.Name = "r"
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: p, ObjectNew: renamed}, q)
	if want := []string{"ns/p", "ns/p", "ns/p", "ns/p", "ns/r"}; !slices.Equal(q.names, want) {
		t.Errorf("%q, want %q", q.names, want)
	}
}
