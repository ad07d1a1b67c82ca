package v1alpha1

import "reflect"

// Grant is what a module may do.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.manifest) && self.manifest && has(self.capabilities))",message="manifest and capabilities cannot be combined"
type Grant struct {
	// Manifest accepts all that the module's manifest asks for.
	Manifest bool `json:"manifest,omitempty"`
	// Capabilities are rules as in a manifest (docs/capabilities.md).
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	Capabilities []Capability `json:"capabilities,omitempty"`
	// Finalizers are names beyond those under the API group of the reconciled kind
	// that the module may have.
	// +kubebuilder:validation:MaxItems=20
	// +listType=set
	Finalizers []string `json:"finalizers,omitempty"`
	// Digests are those of the modules that the grant is for; none is all.
	// +kubebuilder:validation:MaxItems=50
	// +listType=set
	Digests []string `json:"digests,omitempty"`
}

// IsZero reports whether there is no grant. It may be called on a nil Grant.
func (g *Grant) IsZero() bool { return g == nil || reflect.DeepEqual(*g, Grant{}) }

// Capability is a rule about a kind.
type Capability struct {
	// Group is the API group, empty for the core group.
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`
	// Subresources, where given, are what the rule is about, and not the resource
	// itself.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Subresources []string `json:"subresources,omitempty"`
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Verbs []string `json:"verbs"`
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	Names []string `json:"names,omitempty"`
	// Fields, where given, are all that create, update and patch may touch.
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	Fields []string `json:"fields,omitempty"`
}

// Rollout says how another module takes over.
type Rollout struct {
	// Shadow runs it beside the live one first, without its writes. It does not take
	// over if it does something else.
	Shadow *Shadow `json:"shadow,omitempty"`
	// Canary tries it on some objects first.
	Canary *Canary `json:"canary,omitempty"`
	// Probation is how long a new module must do no worse than the one before
	// (default: that of wasmctl run); 0s is none.
	Probation Duration `json:"probation,omitempty"`
	// AutoRollback makes the module before live again where the new one does worse;
	// false is a probation of 0s.
	// +kubebuilder:default=true
	AutoRollback *bool `json:"autoRollback,omitempty"`
	// Reconcile says which objects are reconciled after a swap.
	// +kubebuilder:validation:Enum=all;none;changed
	// +kubebuilder:default=all
	Reconcile Reconcile `json:"reconcile,omitempty"`
	// AllowMoreRights lets the new module have capabilities, within the grant, that
	// the one before did not have.
	// +kubebuilder:default=true
	AllowMoreRights *bool `json:"allowMoreRights,omitempty"`
}

// Shadow says for how long a module is compared with the live one, which reconciles
// all objects at the start, unless Reconcile says otherwise.
//
// +kubebuilder:validation:XValidation:rule="!has(self.time) || duration(self.time) > duration('0s')",message="time must be more than 0s"
type Shadow struct {
	// Time is after how long it ends (default: 1m).
	Time Duration `json:"time,omitempty"`
	// Runs ends it before that, after so many runs were compared.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Runs int32 `json:"runs,omitempty"`
}

// Canary says on which objects a module is tried first.
type Canary struct {
	// Percent is the share of the objects.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent Percent `json:"percent,omitempty"`
	// Namespaces and Selector are those of the objects; empty is all.
	// +kubebuilder:validation:MaxItems=200
	// +listType=set
	Namespaces []string  `json:"namespaces,omitempty"`
	Selector   *Selector `json:"selector,omitempty"`
	// Time is after how long it gets all objects (default: 5m).
	Time Duration `json:"time,omitempty"`
}
