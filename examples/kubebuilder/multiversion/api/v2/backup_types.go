// SPDX-License-Identifier: Apache-2.0

package v2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Schedule has one field for each field of cron; an empty one means any.
type Schedule struct {
	// Minute of the hour.
	// +kubebuilder:validation:Pattern=`^\S*$`
	// +optional
	Minute string `json:"minute,omitempty"`
	// Hour of the day.
	// +kubebuilder:validation:Pattern=`^\S*$`
	// +optional
	Hour string `json:"hour,omitempty"`
	// DayOfMonth is the day of the month.
	// +kubebuilder:validation:Pattern=`^\S*$`
	// +optional
	DayOfMonth string `json:"dayOfMonth,omitempty"`
	// Month of the year.
	// +kubebuilder:validation:Pattern=`^\S*$`
	// +optional
	Month string `json:"month,omitempty"`
	// DayOfWeek is the day of the week.
	// +kubebuilder:validation:Pattern=`^\S*$`
	// +optional
	DayOfWeek string `json:"dayOfWeek,omitempty"`
}

// BackupSpec is the desired state.
type BackupSpec struct {
	// Schedule determines when backups are made.
	Schedule Schedule `json:"schedule"`

	// Image is the program that makes the backup.
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`

	// Paused stops the backups.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// BackupStatus is the state that the controller has observed.
type BackupStatus struct {
	// Conditions contains Ready, which reports whether the CronJob matches the spec.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:conversion:spoke

// Backup makes backups on a schedule.
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BackupSpec   `json:"spec"`
	Status BackupStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// BackupList is a list of Backups.
type BackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Backup `json:"items"`
}
