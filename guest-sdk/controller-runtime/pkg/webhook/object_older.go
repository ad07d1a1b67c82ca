// SPDX-License-Identifier: Apache-2.0

//go:build wasmctl_before_023

package webhook

import "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

// Names that version 0.19 was the last one to have.
type (
	// Defaulter is an object that sets its own defaults.
	Defaulter = admission.Defaulter
	// Validator is an object that validates itself.
	Validator = admission.Validator
)
