// SPDX-License-Identifier: Apache-2.0

// Package v1 contains the webhooks that default and validate CronJobs.
package v1

import (
	"context"
	"fmt"

	"github.com/robfig/cron/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	batchv1 "example.dev/cronjob/api/v1"
)

// SetupCronJobWebhookWithManager registers the webhooks.
func SetupCronJobWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &batchv1.CronJob{}).
		WithDefaulter(&CronJobDefaulter{SuccessfulJobsHistoryLimit: 3, FailedJobsHistoryLimit: 1}).
		WithValidator(&CronJobValidator{}).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-batch-example-dev-v1-cronjob,mutating=true,failurePolicy=fail,sideEffects=None,groups=batch.example.dev,resources=cronjobs,verbs=create;update,versions=v1,name=mcronjob-v1.kb.io,admissionReviewVersions=v1

// CronJobDefaulter sets the fields that a user has left out.
type CronJobDefaulter struct {
	SuccessfulJobsHistoryLimit, FailedJobsHistoryLimit int32
}

// Default implements admission.Defaulter.
func (d *CronJobDefaulter) Default(ctx context.Context, c *batchv1.CronJob) error {
	logf.FromContext(ctx).V(1).Info("defaulting", "name", c.Name)
	if c.Spec.ConcurrencyPolicy == "" {
		c.Spec.ConcurrencyPolicy = batchv1.AllowConcurrent
	}
	if c.Spec.Suspend == nil {
		c.Spec.Suspend = new(bool)
	}
	if c.Spec.SuccessfulJobsHistoryLimit == nil {
		c.Spec.SuccessfulJobsHistoryLimit = &d.SuccessfulJobsHistoryLimit
	}
	if c.Spec.FailedJobsHistoryLimit == nil {
		c.Spec.FailedJobsHistoryLimit = &d.FailedJobsHistoryLimit
	}
	return nil
}

// +kubebuilder:webhook:path=/validate-batch-example-dev-v1-cronjob,mutating=false,failurePolicy=fail,sideEffects=None,groups=batch.example.dev,resources=cronjobs,verbs=create;update,versions=v1,name=vcronjob-v1.kb.io,admissionReviewVersions=v1

// CronJobValidator checks what a schema cannot express.
type CronJobValidator struct{}

// ValidateCreate implements admission.Validator.
func (*CronJobValidator) ValidateCreate(_ context.Context, c *batchv1.CronJob) (admission.Warnings, error) {
	return validate(c)
}

// ValidateUpdate implements admission.Validator.
func (*CronJobValidator) ValidateUpdate(_ context.Context, _, c *batchv1.CronJob) (admission.Warnings, error) {
	return validate(c)
}

// ValidateDelete implements admission.Validator.
func (*CronJobValidator) ValidateDelete(context.Context, *batchv1.CronJob) (admission.Warnings, error) {
	return nil, nil
}

// suffix is the length of the time in the name of a Job, "-1700000000".
const suffix = 11

func validate(c *batchv1.CronJob) (warnings admission.Warnings, err error) {
	var all field.ErrorList
	if longest := validation.DNS1035LabelMaxLength - suffix; len(c.Name) > longest {
		all = append(all, field.Invalid(field.NewPath("metadata", "name"), c.Name, fmt.Sprintf("must be no more than %d characters", longest)))
	}
	if _, err := cron.ParseStandard(c.Spec.Schedule); err != nil {
		all = append(all, field.Invalid(field.NewPath("spec", "schedule"), c.Spec.Schedule, err.Error()))
	}
	if c.Spec.Schedule == "* * * * *" {
		warnings = append(warnings, "spec.schedule: starts a Job each minute")
	}
	if len(all) == 0 {
		return warnings, nil
	}
	return warnings, apierrors.NewInvalid(batchv1.GroupVersion.WithKind("CronJob").GroupKind(), c.Name, all)
}
