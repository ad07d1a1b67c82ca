// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BackupSpec is the desired state.
type BackupSpec struct {
	// Schedule consists of the five fields of cron: minute, hour, day, month, day of the week.
	// +kubebuilder:validation:Pattern=`^\S+( \S+){4}$`
	Schedule string `json:"schedule"`

	// Image is the program that makes the backup.
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`

	// Suspend stops the backups.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
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
// +kubebuilder:storageversion
// +kubebuilder:conversion:hub

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
