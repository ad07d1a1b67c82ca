// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	generatorKind = "ConfigMapGenerator"
	fieldManager  = client.FieldOwner("peer")
)

// generate applies the ConfigMap that a generator requests, and reports that in its status, with the same requests as
// examples/configmapgenerator.
func (r *reconciler) generate(ctx context.Context, gen client.Object) (ctrl.Result, error) {
	if gen.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	content, observed := spec(gen)
	child := applycorev1.ConfigMap(gen.GetName(), gen.GetNamespace()).
		WithData(map[string]string{"content": content}).
		WithOwnerReferences(applymetav1.OwnerReference().
			WithAPIVersion(r.kind.gvk.GroupVersion().String()).WithKind(r.kind.gvk.Kind).WithName(gen.GetName()).WithUID(gen.GetUID()).
			WithController(true).WithBlockOwnerDeletion(true))
	if err := r.client.Apply(ctx, child, fieldManager, client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	result := ctrl.Result{RequeueAfter: 300 * time.Second}
	if observed == gen.GetGeneration() {
		return result, nil
	}
	return result, r.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(r.status(gen)), fieldManager, client.ForceOwnership)
}

// spec returns the content that a generator requests, and the observed generation of its status.
func spec(o client.Object) (content string, observed int64) {
	switch o := o.(type) {
	case *ConfigMapGenerator:
		return o.Spec.Content, o.Status.ObservedGeneration
	case *unstructured.Unstructured:
		content, _, _ = unstructured.NestedString(o.Object, "spec", "content")
		observed, _, _ = unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	}
	return content, observed
}

func (r *reconciler) status(gen client.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"observedGeneration": gen.GetGeneration(),
		"conditions": []any{map[string]any{
			"type": "Ready", "status": string(metav1.ConditionTrue), "reason": "Applied", "message": "the ConfigMap is up to date",
			"observedGeneration": gen.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}},
	}}}
	u.SetGroupVersionKind(r.kind.gvk)
	u.SetName(gen.GetName())
	u.SetNamespace(gen.GetNamespace())
	return u
}
