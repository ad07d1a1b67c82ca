// SPDX-License-Identifier: Apache-2.0

package client

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DeleteOptions are the options of Writer.Delete.
type DeleteOptions struct {
	// DisableReadYourWritesConsistency has no effect; see the constant of that
	// name.
	DisableReadYourWritesConsistency bool
	// GracePeriodSeconds is the grace period; nil is the default of the kind.
	GracePeriodSeconds *int64
	// Preconditions must be met, otherwise the answer is a conflict.
	Preconditions *metav1.Preconditions
	// PropagationPolicy determines the deletion of dependents.
	PropagationPolicy *metav1.DeletionPropagation
	// Raw has options of the API; the fields of this struct override them.
	Raw *metav1.DeleteOptions
	// DryRun is metav1.DryRunAll for a deletion that is only checked.
	DryRun []string
}

// ApplyOptions applies opts to o.
func (o *DeleteOptions) ApplyOptions(opts []DeleteOption) *DeleteOptions {
	return withOptions(o, opts, DeleteOption.ApplyToDelete)
}

// ApplyToDelete implements DeleteOption.
func (o *DeleteOptions) ApplyToDelete(to *DeleteOptions) { merge(to, o) }

// AsDeleteOptions returns the options of the API.
func (o *DeleteOptions) AsDeleteOptions() *metav1.DeleteOptions {
	if o == nil {
		return &metav1.DeleteOptions{}
	}
	if o.Raw == nil {
		o.Raw = &metav1.DeleteOptions{}
	}
	o.Raw.GracePeriodSeconds, o.Raw.Preconditions = o.GracePeriodSeconds, o.Preconditions
	o.Raw.PropagationPolicy, o.Raw.DryRun = o.PropagationPolicy, o.DryRun
	return o.Raw
}

// GracePeriodSeconds is the time that an object has to shut down.
type GracePeriodSeconds int64

// ApplyToDelete implements DeleteOption.
func (s GracePeriodSeconds) ApplyToDelete(o *DeleteOptions) {
	seconds := int64(s)
	o.GracePeriodSeconds = &seconds
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (s GracePeriodSeconds) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	s.ApplyToDelete(&o.DeleteOptions)
}

// Preconditions must be met for a deletion.
type Preconditions metav1.Preconditions

// ApplyToDelete implements DeleteOption.
func (p Preconditions) ApplyToDelete(o *DeleteOptions) {
	conditions := metav1.Preconditions(p)
	o.Preconditions = &conditions
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (p Preconditions) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { p.ApplyToDelete(&o.DeleteOptions) }

// PropagationPolicy determines the deletion of dependents.
type PropagationPolicy metav1.DeletionPropagation

// ApplyToDelete implements DeleteOption.
func (p PropagationPolicy) ApplyToDelete(o *DeleteOptions) {
	policy := metav1.DeletionPropagation(p)
	o.PropagationPolicy = &policy
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (p PropagationPolicy) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	p.ApplyToDelete(&o.DeleteOptions)
}

// DeleteAllOfOptions are the options of Writer.DeleteAllOf.
type DeleteAllOfOptions struct {
	ListOptions
	DeleteOptions
}

// ApplyOptions applies opts to o.
func (o *DeleteAllOfOptions) ApplyOptions(opts []DeleteAllOfOption) *DeleteAllOfOptions {
	return withOptions(o, opts, DeleteAllOfOption.ApplyToDeleteAllOf)
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (o *DeleteAllOfOptions) ApplyToDeleteAllOf(to *DeleteAllOfOptions) {
	o.ApplyToList(&to.ListOptions)
	o.ApplyToDelete(&to.DeleteOptions)
}
