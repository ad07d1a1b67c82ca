// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_before_023

package controllerruntime

import "sigs.k8s.io/controller-runtime/pkg/builder"

// NewWebhookManagedBy returns a builder for webhooks of the manager.
var NewWebhookManagedBy = builder.WebhookManagedBy
