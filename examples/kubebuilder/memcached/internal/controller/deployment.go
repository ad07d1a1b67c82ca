// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	cachev1alpha1 "example.dev/memcached/api/v1alpha1"
)

// imageVariable is the environment variable with the image of the servers.
const imageVariable = "MEMCACHED_IMAGE"

const defaultImage = "memcached:1.6.26-alpine3.19"

// deploymentFor returns the Deployment of a Memcached.
func (r *MemcachedReconciler) deploymentFor(memcached *cachev1alpha1.Memcached) (*appsv1.Deployment, error) {
	image := cmp.Or(os.Getenv(imageVariable), defaultImage)
	labels := labelsFor(memcached.Name, image)
	selector := map[string]string{"app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": memcached.Name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: memcached.Name, Namespace: memcached.Namespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(sizeOf(memcached)),
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []corev1.Container{container(image, memcached.Spec.ContainerPort)},
				},
			},
		},
	}
	return deployment, ctrl.SetControllerReference(memcached, deployment, r.Scheme)
}

// sizeOf returns the number of servers. The API server sets a default, but an object may be older
// than the default.
func sizeOf(memcached *cachev1alpha1.Memcached) int32 { return ptr.Deref(memcached.Spec.Size, 1) }

func container(image string, port int32) corev1.Container {
	return corev1.Container{
		Name: "memcached", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"memcached", "--memory-limit=64", "-o", "modern", "-v"},
		Ports:   []corev1.ContainerPort{{ContainerPort: port, Name: "memcached"}},
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(1001)), AllowPrivilegeEscalation: new(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func labelsFor(name, image string) map[string]string {
	_, version, _ := strings.Cut(image, ":")
	return map[string]string{
		"app.kubernetes.io/name":       "memcached",
		"app.kubernetes.io/instance":   name,
		"app.kubernetes.io/version":    version,
		"app.kubernetes.io/managed-by": "MemcachedController",
	}
}
