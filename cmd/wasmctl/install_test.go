// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Deployment is complete when all of its pods are ready and of the last version, as for kubectl rollout status.
func TestUnready_DescribesAnIncompleteDeployment(t *testing.T) {
	deployment := func(generation int64, st appsv1.DeploymentStatus) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: generation}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}, Status: st}
	}
	done := appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
	old, starting, extra := done, done, done
	old.UpdatedReplicas, starting.AvailableReplicas, extra.Replicas = 1, 0, 3
	starting.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Message: "no"},
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "too few"},
	}
	for name, c := range map[string]struct {
		d    *appsv1.Deployment
		want string
	}{
		"done":         {deployment(2, done), ""},
		"not seen yet": {deployment(3, done), "2 of 2 pods are ready"},
		"old pods":     {deployment(2, old), "1 of 2 pods are ready"},
		"starting":     {deployment(2, starting), "0 of 2 pods are ready: too few"},
		"surplus":      {deployment(2, extra), "2 of 2 pods are ready"},
		"new":          {&appsv1.Deployment{}, "0 of 1 pods are ready"},
	} {
		if got := unready(c.d); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
