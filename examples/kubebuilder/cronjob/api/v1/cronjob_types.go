package v1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronJobSpec is what a user asks for.
type CronJobSpec struct {
	// Schedule is the time of each Job: five fields, or a word such as "@hourly". It
	// may begin with a time zone: "CRON_TZ=Europe/Berlin 0 6 * * *".
	// +kubebuilder:validation:MinLength=1
	Schedule string `json:"schedule"`

	// StartingDeadlineSeconds is how late a Job may start. A Job that is later is left
	// out. Without it, the last Job that was missed starts, however late it is.
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// ConcurrencyPolicy says what happens if it is time for a Job, and one runs.
	// +optional
	// +kubebuilder:default=Allow
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// Suspend stops the start of Jobs. Those that run go on.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// JobTemplate is the Job to start. Its schema would have 4,000 lines: the API
	// server checks each Job instead.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`

	// SuccessfulJobsHistoryLimit is how many Jobs that succeeded are kept. Without it, all.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// FailedJobsHistoryLimit is how many Jobs that failed are kept. Without it, all.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// ConcurrencyPolicy says what happens to a Job that still runs.
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// AllowConcurrent lets Jobs run beside each other.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent waits until no Job runs.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the Jobs that run.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronJobStatus is what the controller has seen and done.
type CronJobStatus struct {
	// Active are the Jobs that run.
	// +optional
	Active []corev1.ObjectReference `json:"active,omitempty"`

	// LastScheduleTime is the time that the last Job was for.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// Conditions has Scheduled: whether the schedule can be read, and is followed.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastScheduleTime`

// CronJob starts Jobs by a schedule.
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CronJobSpec   `json:"spec"`
	Status CronJobStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// CronJobList is a list of CronJobs.
type CronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CronJob `json:"items"`
}
