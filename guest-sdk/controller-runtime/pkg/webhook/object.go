// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Defaulter is an object that sets its own defaults. Version 0.19 is the last
// one that has it. A module does not call it.
type Defaulter interface {
	runtime.Object
	// Default sets the defaults.
	Default()
}

// Validator is an object that validates itself. As with Defaulter, a module
// does not call it.
type Validator interface {
	runtime.Object
	// ValidateCreate checks a new object.
	ValidateCreate() (admission.Warnings, error)
	// ValidateUpdate checks a change from old.
	ValidateUpdate(old runtime.Object) (admission.Warnings, error)
	// ValidateDelete checks a deletion.
	ValidateDelete() (admission.Warnings, error)
}
