// SPDX-License-Identifier: Apache-2.0

package controllerutil

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// TestSetControllerReference_OneControllerOnly checks that setting the same
// controller again only updates the reference, and that a second controller is
// an *AlreadyOwnedError.
func TestSetControllerReference_OneControllerOnly(t *testing.T) {
	s := testScheme(t)
	child, one, two := configMap("a", "child"), configMap("a", "one"), configMap("a", "two")
	for range 2 {
		if err := SetControllerReference(one, child, s); err != nil {
			t.Fatal(err)
		}
	}
	refs := child.OwnerReferences
	if len(refs) != 1 || refs[0].Name != "one" || refs[0].Kind != "ConfigMap" || refs[0].APIVersion != "v1" || !*refs[0].Controller || !*refs[0].BlockOwnerDeletion {
		t.Errorf("%+v", refs)
	}
	var owned *AlreadyOwnedError
	if err := SetControllerReference(two, child, s); !errors.As(err, &owned) || owned.Owner.Name != "one" {
		t.Errorf("a second controller: %v", err)
	}
	if err := SetOwnerReference(two, child, s, WithBlockOwnerDeletion(false)); err != nil || len(child.OwnerReferences) != 2 {
		t.Errorf("an owner that is no controller: %v, %+v", err, child.OwnerReferences)
	}
	if err := RemoveControllerReference(two, child, s); err == nil {
		t.Error("an owner that is no controller was removed as one")
	}
	if err := RemoveControllerReference(one, child, s); err != nil || HasControllerReference(child) || len(child.OwnerReferences) != 1 {
		t.Errorf("%v, %+v", err, child.OwnerReferences)
	}
	if has, err := HasOwnerReference(child.OwnerReferences, two, s); err != nil || !has {
		t.Errorf("%v, %v", has, err)
	}
	if err := RemoveOwnerReference(one, child, s); err == nil {
		t.Error("removing what is not there is no error")
	}
}

// TestSetControllerReference_OwnersAreWhereTheGarbageCollectorLooks checks that
// an owner is in the same namespace or cluster-scoped.
func TestSetControllerReference_OwnersAreWhereTheGarbageCollectorLooks(t *testing.T) {
	s := testScheme(t)
	for name, tc := range map[string]struct {
		owner, child string
		ok           bool
	}{
		"same": {"a", "a", true}, "cluster-scoped owner": {"", "a", true}, "both cluster-scoped": {"", "", true},
		"another": {"a", "b", false}, "cluster-scoped child": {"a", "", false},
	} {
		err := SetControllerReference(configMap(tc.owner, "owner"), configMap(tc.child, "child"), s)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFinalizers_SayWhatTheyChanged checks the results, and that an object has
// a finalizer at most once.
func TestFinalizers_SayWhatTheyChanged(t *testing.T) {
	o := configMap("a", "a")
	for i, want := range []bool{true, false} {
		if got := AddFinalizer(o, "x/y"); got != want || len(o.Finalizers) != 1 {
			t.Errorf("add %d: %v, %q", i, got, o.Finalizers)
		}
	}
	o.Finalizers = append(o.Finalizers, "other", "x/y")
	for i, want := range []bool{true, false} {
		if got := RemoveFinalizer(o, "x/y"); got != want || len(o.Finalizers) != 1 || ContainsFinalizer(o, "x/y") {
			t.Errorf("remove %d: %v, %q", i, got, o.Finalizers)
		}
	}
}
