// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"slices"
	"strings"
	"testing"
)

// TestStage_FormsOfItsVersions: the version in go.mod, or that of a replace line, decides which
// forms of the API a program has.
func TestStage_FormsOfItsVersions(t *testing.T) {
	const before018, before019, before023 = "wasmctl_before_018", "wasmctl_before_019", "wasmctl_before_023"
	for _, test := range []struct {
		runtime, api, pinned string
		tags                 []string
		volumes              bool
	}{
		{"v0.15.3", "v0.27.2", "", []string{before018, before019, before023}, true},
		{"v0.17.6", "v0.29.4", "", []string{before018, before019, before023}, false},
		{"v0.18.7", "v0.30.1", "", []string{before019, before023}, false},
		{"v0.19.0", "v0.31.0", "", []string{before023}, false},
		{"v0.23.0", "v0.35.0", "", nil, false},
		{"v0.23.0", "v0.35.0", "v0.18.2", []string{before019, before023}, false},
	} {
		s := &Stage{pinned: map[string]string{runtimePath: test.pinned}, required: map[string]string{}}
		s.age(goMod{Require: []version{{runtimePath, test.runtime}, {kubeAPI, test.api}}})
		volumes := slices.ContainsFunc(readTable(t), func(o overlay) bool {
			return o.ProjectBefore != "" && o.suits(library{path: kubeAPI, version: "v0.34.0"}, s.required[kubeAPI], nil)
		})
		if !slices.Equal(s.forms, test.tags) || volumes != test.volumes {
			t.Errorf("%+v: %q, %v", test, s.forms, volumes)
		}
	}
}

const olderMod = `module example.com/op

go 1.20

require (
	k8s.io/api v0.28.0
	k8s.io/apimachinery v0.28.0
	k8s.io/client-go v0.28.0
	sigs.k8s.io/controller-runtime v0.16.6
)
`

const olderController = `package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/ratelimiter"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Spec is that of a claim.
var Spec = corev1.PersistentVolumeClaimSpec{Resources: corev1.ResourceRequirements{}}

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

func Setup(mgr ctrl.Manager) error {
	var limiter ratelimiter.RateLimiter = workqueue.DefaultControllerRateLimiter()
	r := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	c, err := controller.New("pods", mgr, controller.Options{Reconciler: r, RateLimiter: limiter})
	if err != nil {
		return err
	}
	h := handler.Funcs{CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.RateLimitingInterface) { q.Add(reconcile.Request{}) }}
	if err := c.Watch(source.Kind(mgr.GetCache(), &corev1.Secret{}), h); err != nil {
		return err
	}
	return c.Watch(source.Kind(mgr.GetCache(), &corev1.Pod{}), &handler.EnqueueRequestForObject{})
}
`

// TestCheck_AProjectOfAnOlderVersionCompiles: with handlers, sources and claims as they were
// in 0.16, and nothing is found that does not work.
func TestCheck_AProjectOfAnOlderVersionCompiles(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: compiles a program")
	}
	r := checked(t, map[string]string{"go.mod": olderMod, "cmd/main.go": fineMain, "internal/controller/c.go": olderController})
	if len(r.Findings) > 0 || r.Fails() > 0 {
		t.Errorf("%+v", r.Findings)
	}
}

// TestAdvice_NamesWhatOlderVersionsHave: the compiler's errors about APIs that do not fit later
// versions.
func TestAdvice_NamesWhatOlderVersionsHave(t *testing.T) {
	for text, want := range map[string]string{
		"undefined: ctrl.ConfigFile": "--files",
		"options.AndFrom undefined (type manager.Options has no field or method AndFrom)":                                                     "--files",
		"module sigs.k8s.io/controller-runtime@latest found, but does not contain package sigs.k8s.io/controller-runtime/pkg/config/v1alpha1": "--files",
		"not enough type arguments for type handler.TypedFuncs: have 1, want 2":                                                               "update it to 0.19",
	} {
		if got := adviceFor(&pkg{}, text); !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
}
