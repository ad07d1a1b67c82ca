// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	kbatch "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	batchv1 "example.dev/cronjob/api/v1"
)

// scheduledTimeAnnotation contains the scheduled time of a Job.
const scheduledTimeAnnotation = "batch.example.dev/scheduled-at"

// sortedJobs are the Jobs of a CronJob, the oldest first.
type sortedJobs struct{ active, successful, failed []*kbatch.Job }

func sortJobs(jobs []kbatch.Job) sortedJobs {
	var s sortedJobs
	for i := range jobs {
		switch job := &jobs[i]; finished(job) {
		case kbatch.JobFailed:
			s.failed = append(s.failed, job)
		case kbatch.JobComplete:
			s.successful = append(s.successful, job)
		default:
			s.active = append(s.active, job)
		}
	}
	for _, list := range [][]*kbatch.Job{s.active, s.successful, s.failed} {
		slices.SortFunc(list, func(a, b *kbatch.Job) int {
			return cmp.Or(startOf(a).Compare(startOf(b)), cmp.Compare(a.Name, b.Name))
		})
	}
	return s
}

// finished returns the condition with which a Job has ended, or "" if it is active.
func finished(job *kbatch.Job) kbatch.JobConditionType {
	for _, c := range job.Status.Conditions {
		if (c.Type == kbatch.JobComplete || c.Type == kbatch.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

func startOf(job *kbatch.Job) time.Time {
	if job.Status.StartTime == nil {
		return time.Time{}
	}
	return job.Status.StartTime.Time
}

// lastTime returns the latest scheduled time of a Job according to the status and the Jobs: the
// status may be outdated, and Jobs may have been deleted.
func lastTime(cronJob *batchv1.CronJob, jobs sortedJobs) *metav1.Time {
	last := cronJob.Status.LastScheduleTime
	for _, job := range slices.Concat(jobs.active, jobs.successful, jobs.failed) {
		at, err := time.Parse(time.RFC3339, job.Annotations[scheduledTimeAnnotation])
		if err == nil && (last == nil || at.After(last.Time)) {
			last = &metav1.Time{Time: at}
		}
	}
	return last
}

// jobFor returns the Job for a time. The name depends on the time, so there is only one.
func (r *CronJobReconciler) jobFor(cronJob *batchv1.CronJob, due time.Time) (*kbatch.Job, error) {
	job := &kbatch.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("%s-%d", cronJob.Name, due.Unix()),
			Namespace:   cronJob.Namespace,
			Labels:      maps.Clone(cronJob.Spec.JobTemplate.Labels),
			Annotations: map[string]string{},
		},
		Spec: *cronJob.Spec.JobTemplate.Spec.DeepCopy(),
	}
	maps.Copy(job.Annotations, cronJob.Spec.JobTemplate.Annotations)
	job.Annotations[scheduledTimeAnnotation] = due.UTC().Format(time.RFC3339)
	return job, ctrl.SetControllerReference(cronJob, job, r.Scheme)
}
