// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ref "k8s.io/client-go/tools/reference"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	batchv1 "example.dev/cronjob/api/v1"
)

// conditionScheduled is the condition that reports whether the schedule of a CronJob is followed.
const conditionScheduled = "Scheduled"

// reportStatus writes the current state to the status.
func (r *CronJobReconciler) reportStatus(ctx context.Context, cronJob *batchv1.CronJob, jobs sortedJobs, problem error) error {
	cronJob.Status.LastScheduleTime = lastTime(cronJob, jobs)
	cronJob.Status.Active = nil
	for _, job := range jobs.active {
		jobRef, err := ref.GetReference(r.Scheme, job)
		if err != nil {
			logf.FromContext(ctx).Error(err, "unable to refer to a Job", "job", job.Name)
			continue
		}
		cronJob.Status.Active = append(cronJob.Status.Active, *jobRef)
	}
	condition := metav1.Condition{
		Type: conditionScheduled, Status: metav1.ConditionTrue, Reason: "Waiting", Message: "Jobs start by the schedule",
		ObservedGeneration: cronJob.Generation,
	}
	switch {
	case errors.Is(problem, errSuspended):
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Suspended", "no Jobs start"
	case problem != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "InvalidSchedule", problem.Error()
	}
	meta.SetStatusCondition(&cronJob.Status.Conditions, condition)
	return r.Status().Update(ctx, cronJob)
}
