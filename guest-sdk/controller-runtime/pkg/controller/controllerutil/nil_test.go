// SPDX-License-Identifier: Apache-2.0

package controllerutil_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// A nil owner is an error, not a panic.
func TestOwner_NilIsAnError(t *testing.T) {
	var owner metav1.Object
	yes, scheme := true, runtime.NewScheme()
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Name: "a", Controller: &yes}}}}
	for name, err := range map[string]error{
		"set":               controllerutil.SetOwnerReference(owner, obj, scheme),
		"set controller":    controllerutil.SetControllerReference(owner, obj, scheme),
		"remove":            controllerutil.RemoveOwnerReference(owner, obj, scheme),
		"remove controller": controllerutil.RemoveControllerReference(owner, obj, scheme),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
