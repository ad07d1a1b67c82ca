// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

var memcacheds = schema.GroupVersionResource{Group: "cache.example.dev", Version: "v1alpha1", Resource: "memcacheds"}

// checkMemcached: sizes, edits and deletions by others, and a finalizer with an event.
func checkMemcached(k *kubebuilder) {
	k.start(asItIs, false)
	const owner, child = "v1alpha1/memcacheds/a", "v1/deployments/a"
	replicas := func(n, generation int) func(objects) bool {
		return func(all objects) bool {
			return all.reads(child, fmt.Sprint(n), "spec", "replicas") && all.reads(child, fmt.Sprint(generation), "metadata", "generation") &&
				all.condition(owner, "Available", "Reconciled")
		}
	}
	of := []schema.GroupVersionResource{memcacheds, e2e.Deployments}
	k.step("a Memcached", of, func(s *side) {
		s.apply("apiVersion: cache.example.dev/v1alpha1\nkind: Memcached\nmetadata: {name: a}\nspec: {size: 2, containerPort: 11212}\n")
	}, func(all objects) bool {
		return replicas(2, 1)(all) && all.reads(child, "2", "spec", "template", "metadata", "labels", "app.kubernetes.io/version")
	})
	k.step("another size", of, func(s *side) { s.merge(memcacheds, "a", `{"spec":{"size":3}}`) }, replicas(3, 2))
	k.step("an edit of the Deployment", of, func(s *side) { s.merge(e2e.Deployments, "a", `{"spec":{"replicas":5}}`) }, replicas(3, 4))
	k.step("a deletion of the Deployment", of, func(s *side) { s.remove(e2e.Deployments, "a") }, replicas(3, 1))
	k.step("a deletion", of, func(s *side) { s.remove(memcacheds, "a") }, func(all objects) bool { return len(all) == 0 })

	var want, got []string
	k.sides[1].await("the event", func() bool {
		want, got = k.sides[0].events(), k.sides[1].events()
		return len(want) == 1 && slices.Equal(want, got)
	})
}

// events returns the notes of the events of the namespace.
func (s *side) events() (all []string) {
	s.Helper()
	list, err := s.of(schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	for i := range list.Items {
		o := list.Items[i].Object
		name, _, _ := unstructured.NestedString(o, "regarding", "name")
		all = append(all, fmt.Sprint(o["type"], " ", o["reason"], " ", o["action"], " ", o["note"], " ", name))
	}
	slices.Sort(all)
	return all
}
