// SPDX-License-Identifier: Apache-2.0

// Package controller contains the controller of CronJobs.
package controller

import (
	"context"
	"time"

	kbatch "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	batchv1 "example.dev/cronjob/api/v1"
)

// CronJobReconciler starts the Jobs of CronJobs.
type CronJobReconciler struct {
	client.Client
	Scheme *runtime.Scheme
	Clock
}

// Clock returns the current time. Tests use their own.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
}

type realClock struct{}

// Now implements Clock.
func (realClock) Now() time.Time { return time.Now() }

// +kubebuilder:rbac:groups=batch.example.dev,resources=cronjobs,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=batch.example.dev,resources=cronjobs/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=batch.example.dev,resources=cronjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs/status,verbs=get

// Reconcile starts the Job of a CronJob that is due, deletes old ones and reports the active ones.
func (r *CronJobReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cronJob batchv1.CronJob
	if err := r.Get(ctx, req.NamespacedName, &cronJob); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var list kbatch.JobList
	if err := r.List(ctx, &list, client.InNamespace(req.Namespace), client.MatchingFields{jobOwnerKey: req.Name}); err != nil {
		return ctrl.Result{}, err
	}
	jobs := sortJobs(list.Items)
	logf.FromContext(ctx).V(1).Info("Jobs", "active", len(jobs.active), "successful", len(jobs.successful), "failed", len(jobs.failed))

	due, next, problem := r.times(&cronJob, jobs)
	if err := r.reportStatus(ctx, &cronJob, jobs, problem); err != nil {
		return ctrl.Result{}, err
	}
	r.deleteOld(ctx, jobs.failed, cronJob.Spec.FailedJobsHistoryLimit)
	r.deleteOld(ctx, jobs.successful, cronJob.Spec.SuccessfulJobsHistoryLimit)
	if problem != nil {
		return ctrl.Result{}, nil //nolint:nilerr // the status says it, and a change of the spec starts the next run
	}
	// The next time may have come already, and a requeue after 0 would be ignored.
	later := ctrl.Result{RequeueAfter: max(next.Sub(r.Now()), time.Millisecond)}
	if due.IsZero() {
		return later, nil
	}
	return later, r.start(ctx, &cronJob, jobs.active, due)
}

// start starts the Job for a time, if the concurrency policy allows it.
func (r *CronJobReconciler) start(ctx context.Context, cronJob *batchv1.CronJob, active []*kbatch.Job, due time.Time) error {
	log := logf.FromContext(ctx).WithValues("due", due)
	if cronJob.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(active) > 0 {
		log.V(1).Info("a Job still runs", "active", len(active))
		return nil // the end of the active Job causes the next run
	}
	if cronJob.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent {
		for _, job := range active {
			if err := client.IgnoreNotFound(r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
				return err
			}
		}
	}
	job, err := r.jobFor(cronJob, due)
	if err != nil {
		return err
	}
	if err := client.IgnoreAlreadyExists(r.Create(ctx, job)); err != nil {
		return err
	}
	log.Info("started a Job", "job", job.Name)
	return nil
}

// deleteOld deletes the oldest Jobs beyond a limit. Those that it fails to delete are left to the
// next run.
func (r *CronJobReconciler) deleteOld(ctx context.Context, jobs []*kbatch.Job, limit *int32) {
	if limit == nil {
		return
	}
	for _, job := range jobs[:max(0, len(jobs)-int(*limit))] {
		err := r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			logf.FromContext(ctx).Error(err, "unable to delete an old Job", "job", job.Name)
		}
	}
}

// jobOwnerKey is the index of Jobs by the CronJob that owns them.
const jobOwnerKey = ".metadata.controller"

// SetupWithManager declares the controller and its index.
func (r *CronJobReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Clock == nil {
		r.Clock = realClock{}
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &kbatch.Job{}, jobOwnerKey, ownerOf); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&batchv1.CronJob{}).
		Owns(&kbatch.Job{}).
		Named("cronjob").
		Complete(r)
}

// ownerOf returns the index value: the name of the CronJob that owns a Job.
func ownerOf(obj client.Object) []string {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || owner.Kind != "CronJob" || owner.APIVersion != batchv1.GroupVersion.String() {
		return nil
	}
	return []string{owner.Name}
}
