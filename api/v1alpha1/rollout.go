// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"reflect"

	"github.com/wasmctl/wasmctl/abi"
)

// Grant is the set of rights of a module.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.manifest) && self.manifest && (has(self.capabilities) || has(self.finalizers)))",message="manifest cannot be combined with capabilities or finalizers: it grants all that the manifest requests"
type Grant struct {
	// Manifest accepts all capabilities, and the finalizer, that the module's manifest requests.
	Manifest bool `json:"manifest,omitempty"`
	// Capabilities are rules as in a manifest (docs/capabilities.md).
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	Capabilities []abi.Capability `json:"capabilities,omitempty"`
	// Finalizers are finalizers that the module may use in addition to those under the API
	// group of the reconciled kind.
	// +kubebuilder:validation:MaxItems=20
	// +listType=set
	Finalizers []string `json:"finalizers,omitempty"`
	// Digests are the digests of the modules that the grant applies to; if empty, all.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:Pattern=`^sha256:[0-9a-f]{64}$`
	// +listType=set
	Digests []string `json:"digests,omitempty"`
	// Signers are fingerprints of keys, one of which must have signed the module; if empty,
	// the grant applies to unsigned modules too. The keys themselves are those of
	// module.verify, or of the process.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:Pattern=`^sha256:[0-9a-f]{64}$`
	// +listType=set
	Signers []string `json:"signers,omitempty"`
}

// IsZero reports whether there is no grant. It may be called on a nil Grant.
func (g *Grant) IsZero() bool { return g == nil || reflect.DeepEqual(*g, Grant{}) }

// Rollout configures how another module takes over.
type Rollout struct {
	// Shadow first runs the new module concurrently with the live one, without sending its
	// writes. The new module does not take over if its writes differ.
	Shadow *Shadow `json:"shadow,omitempty"`
	// Canary first tries the new module on some objects.
	Canary *Canary `json:"canary,omitempty"`
	// Probation is how long a new module is compared with its predecessor (default: that of
	// wasmctl run). If 0s, there is no probation.
	Probation Duration `json:"probation,omitempty"`
	// AutoRollback restores the predecessor if the new module does worse. If false, there
	// is no probation.
	// +kubebuilder:default=true
	AutoRollback *bool `json:"autoRollback,omitempty"`
	// Reconcile selects the objects that are reconciled after a swap.
	// +kubebuilder:validation:Enum=all;none;changed
	// +kubebuilder:default=all
	Reconcile Reconcile `json:"reconcile,omitempty"`
	// AllowMoreRights allows the new module to have capabilities, within the grant, that
	// its predecessor did not have.
	// +kubebuilder:default=true
	AllowMoreRights *bool `json:"allowMoreRights,omitempty"`
}

// Shadow limits the comparison of a module with the live one, which reconciles all objects
// at the start unless Reconcile excludes that.
//
// +kubebuilder:validation:XValidation:rule="!has(self.time) || duration(self.time) > duration('0s')",message="time must be more than 0s"
type Shadow struct {
	// Time is how long the comparison lasts (default: 1m).
	Time Duration `json:"time,omitempty"`
	// Runs is the number of compared runs after which the comparison ends early.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Runs int32 `json:"runs,omitempty"`
}

// Canary selects the objects on which a module is tried first.
type Canary struct {
	// Percent is the share of the objects.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent Percent `json:"percent,omitempty"`
	// Namespaces and Selector limit the objects; if empty, all objects match.
	// +kubebuilder:validation:MaxItems=200
	// +listType=set
	Namespaces []string  `json:"namespaces,omitempty"`
	Selector   *Selector `json:"selector,omitempty"`
	// Time is how long the canary lasts before it gets all objects (default: 5m).
	Time Duration `json:"time,omitempty"`
}
