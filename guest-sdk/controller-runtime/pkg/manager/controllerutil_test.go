// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// TestCreateOr_WritesOnlyWhatDiffers: the first call creates, a second call
// with the same desired state has no effect, and a call with another one writes
// it. A function that changes the name is an error.
func TestCreateOr_WritesOnlyWhatDiffers(t *testing.T) {
	type createOr func(context.Context, client.Client, client.Object, controllerutil.MutateFn) (controllerutil.OperationResult, error)
	for name, f := range map[string]createOr{"update": controllerutil.CreateOrUpdate, "patch": controllerutil.CreateOrPatch} {
		in(t, func(ctx context.Context, _ ctrl.Manager, c client.Client) {
			for i, step := range []struct {
				value string
				want  controllerutil.OperationResult
			}{
				{"1", controllerutil.OperationResultCreated},
				{"1", controllerutil.OperationResultNone},
				{"2", controllerutil.OperationResultUpdated},
			} {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
				got, err := f(ctx, c, pod, func() error {
					pod.Annotations = map[string]string{"value": step.value}
					return nil
				})
				if err != nil || got != step.want {
					t.Errorf("%s, step %d: %s, %v; want %s", name, i, got, err, step.want)
				}
				var stored corev1.Pod
				if err := c.Get(ctx, client.ObjectKeyFromObject(pod), &stored); err != nil || stored.Annotations["value"] != step.value {
					t.Errorf("%s, step %d: stored %v, %v", name, i, stored.Annotations, err)
				}
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
			if _, err := f(ctx, c, pod, func() error { pod.Name = "c"; return nil }); err == nil {
				t.Errorf("%s: the name was changed", name)
			}
		})
	}
}

// TestCreateOrPatch_WritesTheStatusToo covers the status alone, and after the
// rest.
func TestCreateOrPatch_WritesTheStatusToo(t *testing.T) {
	in(t, func(ctx context.Context, _ ctrl.Manager, c client.Client) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
		if err := c.Create(ctx, pod); err != nil {
			t.Error(err)
		}
		for _, step := range []struct {
			label, message string
			want           controllerutil.OperationResult
		}{
			{"", "1", controllerutil.OperationResultUpdatedStatusOnly},
			{"a", "2", controllerutil.OperationResultUpdatedStatus},
			{"a", "2", controllerutil.OperationResultNone},
			{"b", "2", controllerutil.OperationResultUpdated},
		} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
			got, err := controllerutil.CreateOrPatch(ctx, c, pod, func() error {
				if step.label != "" {
					pod.Labels = map[string]string{"label": step.label}
				}
				pod.Status.Message = step.message
				return nil
			})
			if err != nil || got != step.want {
				t.Errorf("%+v: %s, %v", step, got, err)
			}
			var stored corev1.Pod
			if err := c.Get(ctx, client.ObjectKeyFromObject(pod), &stored); err != nil || stored.Labels["label"] != step.label || stored.Status.Message != step.message {
				t.Errorf("%+v: stored %v %q, %v", step, stored.Labels, stored.Status.Message, err)
			}
		}
	})
}
