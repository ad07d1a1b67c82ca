// SPDX-License-Identifier: Apache-2.0

// Package controller contains the controller of Backups.
package controller

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	storagev1 "example.dev/multiversion/api/v1"
)

// BackupReconciler maintains a CronJob for each Backup. It uses only v1: the API server converts
// every Backup to that version.
type BackupReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// +kubebuilder:rbac:groups=storage.example.dev,resources=backups,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.example.dev,resources=backups/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=storage.example.dev,resources=backups/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=cronjobs,verbs=get;list;watch;create;update;patch;delete

// Reconcile creates or updates the CronJob that the Backup requests.
func (r *BackupReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var backup storagev1.Backup
	if err := r.Get(ctx, req.NamespacedName, &backup); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cronJob := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: backup.Name, Namespace: backup.Namespace}}
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, cronJob, func() error {
		want(&cronJob.Spec, &backup.Spec)
		return controllerutil.SetControllerReference(&backup, cronJob, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if done != controllerutil.OperationResultNone {
		logf.FromContext(ctx).Info("the CronJob was "+string(done), "schedule", backup.Spec.Schedule)
	}
	before := client.MergeFrom(backup.DeepCopy())
	condition := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Scheduled", Message: "backups are made at " + backup.Spec.Schedule,
		ObservedGeneration: backup.Generation,
	}
	if backup.Spec.Suspend {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Suspended", "no backups are made"
	}
	if !meta.SetStatusCondition(&backup.Status.Conditions, condition) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Patch(ctx, &backup, before)
}

// want sets the fields of the CronJob that the Backup determines, and does not change the others.
func want(cronJob *batchv1.CronJobSpec, backup *storagev1.BackupSpec) {
	cronJob.Schedule, cronJob.Suspend = backup.Schedule, &backup.Suspend
	cronJob.ConcurrencyPolicy = batchv1.ForbidConcurrent
	pod := &cronJob.JobTemplate.Spec.Template.Spec
	pod.RestartPolicy = corev1.RestartPolicyOnFailure
	if len(pod.Containers) == 0 {
		pod.Containers = []corev1.Container{{Name: "backup"}}
	}
	pod.Containers[0].Image = backup.Image
}

// SetupWithManager declares the controller.
func (r *BackupReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&storagev1.Backup{}).
		Owns(&batchv1.CronJob{}).
		Named("backup").
		Complete(r)
}
