// SPDX-License-Identifier: Apache-2.0

package predicate_test

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func pod(r *rand.Rand) *corev1.Pod {
	few := func() map[string]string {
		return []map[string]string{nil, {}, {"a": "1"}, {"a": "2"}, {"a": "1", "b": "1"}}[r.IntN(5)]
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "p", Generation: int64(r.IntN(2)), ResourceVersion: []string{"1", "2"}[r.IntN(2)], Labels: few(), Annotations: few(),
	}}
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// TestChanged_PassesUpdatesOfItsPart: an update passes if its part of the
// metadata has changed; an empty map equals a missing one. Other events pass,
// and an update without one of its objects does not.
func TestChanged_PassesUpdatesOfItsPart(t *testing.T) {
	for element, c := range map[string]struct {
		p    predicate.Predicate
		same func(a, b *corev1.Pod) bool
	}{
		"generation":      {predicate.GenerationChangedPredicate{}, func(a, b *corev1.Pod) bool { return a.Generation == b.Generation }},
		"resourceVersion": {&predicate.ResourceVersionChangedPredicate{}, func(a, b *corev1.Pod) bool { return a.ResourceVersion == b.ResourceVersion }},
		"labels":          {predicate.LabelChangedPredicate{}, func(a, b *corev1.Pod) bool { return equal(a.Labels, b.Labels) }},
		"annotations":     {predicate.AnnotationChangedPredicate{}, func(a, b *corev1.Pod) bool { return equal(a.Annotations, b.Annotations) }},
	} {
		if got, ok := predicate.Element(c.p); got != element || !ok {
			t.Errorf("%s: its element is %q", element, got)
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			a, b := pod(r), pod(r)
			if got, want := c.p.Update(event.UpdateEvent{ObjectOld: a, ObjectNew: b}), !c.same(a, b); got != want {
				t.Fatalf("%s: %v to %v passes: %t", element, a, b, got)
			}
			if !c.p.Create(event.CreateEvent{Object: a}) || !c.p.Delete(event.DeleteEvent{Object: a}) || !c.p.Generic(event.GenericEvent{Object: a}) {
				t.Errorf("%s: hides other events than updates", element)
			}
		}
		if c.p.Update(event.UpdateEvent{ObjectNew: pod(r)}) || c.p.Update(event.UpdateEvent{ObjectOld: pod(r), ObjectNew: (*corev1.Pod)(nil)}) {
			t.Errorf("%s: an update without one of its objects passes", element)
		}
	}
}

// TestLogic_IsThatOfBools: for each type of event, And, Or and Not of
// predicates equal And, Or and Not of their results.
func TestLogic_IsThatOfBools(t *testing.T) {
	constant := func(v bool) predicate.Predicate {
		return predicate.NewPredicateFuncs(func(client.Object) bool { return v })
	}
	r := rand.New(rand.NewPCG(1, 2))
	var random func(depth int) (predicate.Predicate, bool)
	random = func(depth int) (predicate.Predicate, bool) {
		if depth == 0 {
			v := r.IntN(2) == 0
			return constant(v), v
		}
		p, v := random(depth - 1)
		q, w := random(depth - 1)
		switch r.IntN(3) {
		case 0:
			return predicate.And(p, q), v && w
		case 1:
			return predicate.Or(p, q), v || w
		default:
			return predicate.Not(p), !v
		}
	}
	for range 300 {
		p, want := random(r.IntN(4))
		o := pod(r)
		got := []bool{
			p.Create(event.CreateEvent{Object: o}), p.Update(event.UpdateEvent{ObjectOld: o, ObjectNew: o}),
			p.Delete(event.DeleteEvent{Object: o}), p.Generic(event.GenericEvent{Object: o}),
		}
		for _, g := range got {
			if g != want {
				t.Fatalf("%v, want %t", got, want)
			}
		}
	}
	if !predicate.And[client.Object]().Create(event.CreateEvent{}) || predicate.Or[client.Object]().Create(event.CreateEvent{}) {
		t.Error("And of none passes, and Or of none does not")
	}
}

// TestLabelSelectorPredicate_AsksAboutTheNewObject checks updates.
func TestLabelSelectorPredicate_AsksAboutTheNewObject(t *testing.T) {
	p, err := predicate.LabelSelectorPredicate(metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	yes, no := &corev1.Pod{}, &corev1.Pod{}
	yes.Labels = map[string]string{"a": "1"}
	if !p.Update(event.UpdateEvent{ObjectOld: no, ObjectNew: yes}) || p.Update(event.UpdateEvent{ObjectOld: yes, ObjectNew: no}) || p.Create(event.CreateEvent{Object: no}) {
		t.Error("it does not follow the new object")
	}
	if _, err := predicate.LabelSelectorPredicate(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "no"}}}); err == nil {
		t.Error("a wrong selector is no error")
	}
}
