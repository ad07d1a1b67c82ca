// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	batchv1 "example.dev/cronjob/api/v1"
	webhookv1 "example.dev/cronjob/internal/webhook/v1"
)

// TestCronJobDefaulter_SetsOnlyWhatIsUnset: a second call changes nothing.
func TestCronJobDefaulter_SetsOnlyWhatIsUnset(t *testing.T) {
	d := &webhookv1.CronJobDefaulter{SuccessfulJobsHistoryLimit: 3, FailedJobsHistoryLimit: 1}
	c := &batchv1.CronJob{Spec: batchv1.CronJobSpec{ConcurrencyPolicy: batchv1.ForbidConcurrent}}
	for range 2 {
		if err := d.Default(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if s := c.Spec; s.ConcurrencyPolicy != batchv1.ForbidConcurrent || *s.Suspend || *s.SuccessfulJobsHistoryLimit != 3 || *s.FailedJobsHistoryLimit != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// TestCronJobValidator_ReportsAllFields at once.
func TestCronJobValidator_ReportsAllFields(t *testing.T) {
	c := &batchv1.CronJob{Spec: batchv1.CronJobSpec{Schedule: "* * * * *"}}
	v := &webhookv1.CronJobValidator{}
	if warnings, err := v.ValidateCreate(t.Context(), c); err != nil || len(warnings) != 1 {
		t.Errorf("%q, %v", warnings, err)
	}
	c.Name, c.Spec.Schedule = strings.Repeat("a", 60), "once in a while"
	_, err := v.ValidateUpdate(t.Context(), c, c)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.name") || !strings.Contains(err.Error(), "spec.schedule") {
		t.Errorf("%v", err)
	}
}
