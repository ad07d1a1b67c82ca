// SPDX-License-Identifier: Apache-2.0

// Package controller contains the controller of Memcacheds.
package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	cachev1alpha1 "example.dev/memcached/api/v1alpha1"
)

const memcachedFinalizer = "cache.example.dev/finalizer"

const (
	// typeAvailable reports whether the Deployment matches the spec.
	typeAvailable = "Available"
	// typeDegraded reports whether the servers are being removed.
	typeDegraded = "Degraded"
)

// MemcachedReconciler maintains a Deployment for each Memcached.
type MemcachedReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder events.EventRecorder
}

// +kubebuilder:rbac:groups=cache.example.dev,resources=memcacheds,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=cache.example.dev,resources=memcacheds/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=cache.example.dev,resources=memcacheds/finalizers,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update;patch;delete

// Reconcile creates or updates the Deployment that the Memcached requests.
func (r *MemcachedReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	memcached := &cachev1alpha1.Memcached{}
	if err := r.Get(ctx, req.NamespacedName, memcached); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !memcached.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, memcached)
	}
	if controllerutil.AddFinalizer(memcached, memcachedFinalizer) {
		if err := r.Update(ctx, memcached); err != nil {
			return ctrl.Result{}, err
		}
	}
	found := &appsv1.Deployment{}
	err := r.Get(ctx, req.NamespacedName, found)
	switch {
	case apierrors.IsNotFound(err):
		err = r.create(ctx, memcached)
	case err == nil:
		err = r.resize(ctx, memcached, found)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.setCondition(ctx, memcached, metav1.Condition{
		Type: typeAvailable, Status: metav1.ConditionTrue, Reason: "Reconciled",
		Message: fmt.Sprintf("Deployment %s asks for %d replicas", memcached.Name, sizeOf(memcached)),
	})
}

// finalize cleans up before a Memcached is deleted.
func (r *MemcachedReconciler) finalize(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	if !controllerutil.ContainsFinalizer(memcached, memcachedFinalizer) {
		return nil
	}
	if err := r.setCondition(ctx, memcached, metav1.Condition{
		Type: typeDegraded, Status: metav1.ConditionTrue, Reason: "Finalizing", Message: "the servers are being removed",
	}); err != nil {
		return err
	}
	r.Recorder.Eventf(memcached, nil, corev1.EventTypeWarning, "Deleting", "Finalize",
		"Memcached %s is deleted from namespace %s", memcached.Name, memcached.Namespace)
	controllerutil.RemoveFinalizer(memcached, memcachedFinalizer)
	return client.IgnoreNotFound(r.Update(ctx, memcached))
}

// create creates the Deployment.
func (r *MemcachedReconciler) create(ctx context.Context, memcached *cachev1alpha1.Memcached) error {
	deployment, err := r.deploymentFor(memcached)
	if err != nil {
		return err
	}
	logf.FromContext(ctx).Info("creating the Deployment", "deployment", deployment.Name)
	return r.Create(ctx, deployment)
}

// resize corrects the number of servers.
func (r *MemcachedReconciler) resize(ctx context.Context, memcached *cachev1alpha1.Memcached, found *appsv1.Deployment) error {
	if found.Spec.Replicas != nil && *found.Spec.Replicas == sizeOf(memcached) {
		return nil
	}
	found.Spec.Replicas = new(sizeOf(memcached))
	return r.Update(ctx, found)
}

func (r *MemcachedReconciler) setCondition(ctx context.Context, memcached *cachev1alpha1.Memcached, condition metav1.Condition) error {
	condition.ObservedGeneration = memcached.Generation
	if !meta.SetStatusCondition(&memcached.Status.Conditions, condition) {
		return nil
	}
	return r.Status().Update(ctx, memcached)
}

// SetupWithManager declares the controller.
func (r *MemcachedReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&cachev1alpha1.Memcached{}).
		Owns(&appsv1.Deployment{}).
		Named("memcached").
		Complete(r)
}
