// SPDX-License-Identifier: Apache-2.0

// Package v1 contains the webhook that converts Backups between their versions.
package v1

import (
	ctrl "sigs.k8s.io/controller-runtime"

	storagev1 "example.dev/multiversion/api/v1"
)

// SetupBackupWebhookWithManager registers the webhook. It serves the conversions of the scheme's
// types.
func SetupBackupWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &storagev1.Backup{}).Complete()
}
