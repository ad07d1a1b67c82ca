// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	cachev1alpha1 "example.dev/memcached/api/v1alpha1"
)

// TestDeploymentFor_TakesTheImageOfTheEnvironment: the label contains its version, but the selector does not, because
// it cannot be changed.
func TestDeploymentFor_TakesTheImageOfTheEnvironment(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := cachev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &MemcachedReconciler{Scheme: scheme}
	memcached := &cachev1alpha1.Memcached{Spec: cachev1alpha1.MemcachedSpec{Size: new(int32(2))}}
	memcached.Name = "a"
	for image, want := range map[string][2]string{"": {defaultImage, "1.6.26-alpine3.19"}, "mirror/memcached:2": {"mirror/memcached:2", "2"}} {
		t.Setenv(imageVariable, image)
		d, err := r.deploymentFor(memcached)
		if err != nil {
			t.Fatal(err)
		}
		const version = "app.kubernetes.io/version"
		if got := [2]string{d.Spec.Template.Spec.Containers[0].Image, d.Spec.Template.Labels[version]}; got != want || d.Spec.Selector.MatchLabels[version] != "" {
			t.Errorf("%q, want %q; selector %v", got, want, d.Spec.Selector.MatchLabels)
		}
	}
}
