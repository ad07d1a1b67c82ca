// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func applied(data map[string]string) *applycorev1.ConfigMapApplyConfiguration {
	return applycorev1.ConfigMap("a", "default").WithData(data)
}

// Server-side apply creates an object. It removes a field that its manager no
// longer applies. A field of another manager is a conflict, unless force takes
// it over.
func TestFake_AppliesByManagers(t *testing.T) {
	c := fake.NewFakeClient()
	if err := c.Apply(t.Context(), applied(nil)); !apierrors.IsInvalid(err) {
		t.Errorf("without a manager: %v", err)
	}
	must(t, c.Apply(t.Context(), applied(map[string]string{"a": "1", "b": "1"}), client.FieldOwner("x")))
	must(t, c.Apply(t.Context(), applied(map[string]string{"a": "2"}), client.FieldOwner("x")))
	must(t, c.Apply(t.Context(), applied(map[string]string{"c": "2"}), client.FieldOwner("y")))
	if got := read(t, c, configMap("a")).Data; len(got) != 2 || got["a"] != "2" || got["c"] != "2" {
		t.Errorf("data is %v", got)
	}
	theirs := applied(map[string]string{"a": "3"})
	if err := c.Apply(t.Context(), theirs, client.FieldOwner("y")); !apierrors.IsConflict(err) {
		t.Errorf("the field of another manager: %v", err)
	}
	must(t, c.Apply(t.Context(), theirs, client.FieldOwner("y"), client.ForceOwnership))
	if got := read(t, c, configMap("a")).Data; got["a"] != "3" {
		t.Errorf("data is %v", got)
	}
}

// Lists of built-in kinds are merged by their keys.
func TestFake_AppliesListsByTheirKeys(t *testing.T) {
	of := func(name string) *applyappsv1.DeploymentApplyConfiguration {
		return applyappsv1.Deployment("a", "default").WithSpec(applyappsv1.DeploymentSpec().WithTemplate(
			applycorev1.PodTemplateSpec().WithSpec(applycorev1.PodSpec().WithContainers(applycorev1.Container().WithName(name)))))
	}
	c := fake.NewFakeClient()
	must(t, c.Apply(t.Context(), of("x"), client.FieldOwner("x")))
	must(t, c.Apply(t.Context(), of("y"), client.FieldOwner("y")))
	if n := len(read(t, c, deployment("a")).Spec.Template.Spec.Containers); n != 2 {
		t.Errorf("%d containers", n)
	}
}

// A manager owns its applied status separately from its other fields: it may
// apply either without the other.
func TestFake_AppliesTheStatusApart(t *testing.T) {
	c := fake.NewClientBuilder().WithReturnManagedFields().Build()
	status := applyappsv1.Deployment("a", "default").WithStatus(applyappsv1.DeploymentStatus().WithReplicas(2))
	if err := c.Status().Apply(t.Context(), status, client.FieldOwner("x")); !apierrors.IsNotFound(err) {
		t.Errorf("the status of nothing: %v", err)
	}
	must(t, c.Apply(t.Context(), applyappsv1.Deployment("a", "default").WithSpec(applyappsv1.DeploymentSpec().WithReplicas(3)), client.FieldOwner("x")))
	must(t, c.Status().Apply(t.Context(), status, client.FieldOwner("x")))
	d := read(t, c, &appsv1.Deployment{ObjectMeta: deployment("a").ObjectMeta})
	if *d.Spec.Replicas != 3 || d.Status.Replicas != 2 {
		t.Errorf("%d replicas, %d of the status", *d.Spec.Replicas, d.Status.Replicas)
	}
	subs := map[string]bool{}
	for _, entry := range d.ManagedFields {
		subs[entry.Manager+" "+entry.Subresource] = true
	}
	if !subs["x "] || !subs["x status"] || len(subs) != 2 {
		t.Errorf("managers %v", subs)
	}
}

// Answers have no managedFields by default.
func TestFake_HidesManagers(t *testing.T) {
	for _, show := range []bool{false, true} {
		b := fake.NewClientBuilder()
		if show {
			b.WithReturnManagedFields()
		}
		c := b.Build()
		obj := configMap("a")
		obj.Data = map[string]string{"a": "b"}
		must(t, c.Create(t.Context(), obj, client.FieldOwner("x")))
		var list corev1.ConfigMapList
		must(t, c.List(t.Context(), &list))
		for _, o := range []*corev1.ConfigMap{read(t, c, configMap("a")), &list.Items[0]} {
			if (len(o.ManagedFields) > 0) != show {
				t.Errorf("managedFields %v", o.ManagedFields)
			}
		}
	}
}

// Each type of patch has the effect that it has in an API server. A patch that
// does not apply is invalid.
func TestFake_Patches(t *testing.T) {
	d := deployment("a")
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "x", Image: "1"}}
	c := fake.NewFakeClient(d)
	was := d.DeepCopy()
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "y"})
	must(t, c.Patch(t.Context(), d, client.StrategicMergeFrom(was)))
	must(t, c.Patch(t.Context(), d, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"2"}]`))))
	must(t, c.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
	list := read(t, c, d).Spec.Template.Spec.Containers
	if len(list) != 2 || d.Labels["a"] != "b" {
		t.Fatalf("containers %v, labels %v", list, d.Labels)
	}
	for i, want := range map[string]string{"x": "2", "y": ""} {
		if got := list[slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == i })].Image; got != want {
			t.Errorf("image of %s: %s", i, got)
		}
	}
	wrong := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/metadata/name","value":"b"}]`))
	if err := c.Patch(t.Context(), d, wrong); !apierrors.IsInvalid(err) {
		t.Errorf("a test that fails: %v", err)
	}
	old := was.DeepCopy()
	old.ResourceVersion = "1"
	if err := c.Patch(t.Context(), d, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
		t.Errorf("a lock on an old version: %v", err)
	}
	late := read(t, c, d)
	late.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	if err := c.Patch(t.Context(), late, client.MergeFrom(d)); !apierrors.IsInvalid(err) {
		t.Errorf("a deletionTimestamp by a patch: %v", err)
	}
}
