// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	batchv1 "example.dev/cronjob/api/v1"
)

// maxMissed is the maximum number of missed times. A schedule that has missed more, because of a
// wrong clock or a long absence of the controller, needs a deadline.
const maxMissed = 100

var errSuspended = errors.New("suspended")

// times returns the last time for which a Job is due, if any, and the next one. The error explains
// why there are none.
func (r *CronJobReconciler) times(cronJob *batchv1.CronJob, jobs sortedJobs) (due, next time.Time, err error) {
	schedule, err := cron.ParseStandard(cronJob.Spec.Schedule)
	if err != nil {
		return due, next, fmt.Errorf("schedule: %w", err)
	}
	if cronJob.Spec.Suspend != nil && *cronJob.Spec.Suspend {
		return due, next, errSuspended
	}
	now := r.Now()
	from := cronJob.CreationTimestamp.Time
	if last := lastTime(cronJob, jobs); last != nil {
		from = last.Time
	}
	if seconds := cronJob.Spec.StartingDeadlineSeconds; seconds != nil {
		if earliest := now.Add(-time.Duration(*seconds) * time.Second); earliest.After(from) {
			from = earliest
		}
	}
	return missed(schedule, from, now)
}

// missed returns the last time of a schedule that is after from and not after now, and the first
// one after now.
func missed(schedule cron.Schedule, from, now time.Time) (due, next time.Time, err error) {
	next = schedule.Next(from)
	for n := 0; !next.IsZero() && !next.After(now); n++ {
		if n == maxMissed {
			return time.Time{}, time.Time{}, fmt.Errorf("more than %d times were missed since %s: set startingDeadlineSeconds, or correct the clock",
				maxMissed, from.UTC().Format(time.RFC3339))
		}
		due, next = next, schedule.Next(next)
	}
	if next.IsZero() {
		return due, next, errors.New("schedule: has no time in the next years")
	}
	return due, next, nil
}
