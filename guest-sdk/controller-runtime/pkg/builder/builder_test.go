// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// defaulter does nothing.
type defaulter struct{}

func (defaulter) Default(context.Context, runtime.Object) error { return nil }

// A builder reports each mistake with the next step.
func TestBuilder_SaysWhatIsWrong(t *testing.T) {
	m, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: fake.NewFakeClient().Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	r := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	for want, build := range map[string]func() error{
		"reconciler is nil":  func() error { return ctrl.NewControllerManagedBy(m).For(&corev1.Pod{}).Complete(nil) },
		"manager is nil":     func() error { return ctrl.NewControllerManagedBy(nil).For(&corev1.Pod{}).Complete(r) },
		"nothing is watched": func() error { return ctrl.NewControllerManagedBy(m).Named("a").Complete(r) },
		"called twice":       func() error { return ctrl.NewControllerManagedBy(m).For(&corev1.Pod{}).For(&corev1.Pod{}).Complete(r) },
		"needs For":          func() error { return ctrl.NewControllerManagedBy(m).Named("a").Owns(&corev1.Pod{}).Complete(r) },
		"has no name":        func() error { return ctrl.NewControllerManagedBy(m).Owns(&corev1.Pod{}).Complete(r) },
		"has no handler": func() error {
			return ctrl.NewControllerManagedBy(m).For(&corev1.Pod{}).Watches(&corev1.Pod{}, nil).Complete(r)
		},
		"two reconcilers": func() error {
			return ctrl.NewControllerManagedBy(m).For(&corev1.Pod{}).WithOptions(controller.Options{Reconciler: r}).Complete(r)
		},
		"not of string": func() error {
			typed := reconcile.TypedFunc[string](func(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, nil })
			return builder.TypedControllerManagedBy[string](m).Named("a").For(&corev1.Pod{}).Complete(typed)
		},
		"is not a path": func() error {
			return ctrl.NewWebhookManagedBy(m, &corev1.Pod{}).WithCustomDefaulter(defaulter{}).WithDefaulterCustomPath("a b").Complete()
		},
		"two defaulters": func() error {
			return ctrl.NewWebhookManagedBy(m, &corev1.Pod{}).WithCustomDefaulter(defaulter{}).WithCustomDefaulter(defaulter{}).Complete()
		},
	} {
		if err := build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c, err := ctrl.NewControllerManagedBy(m).For(&corev1.Pod{}).Build(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Error(err)
	}
}
