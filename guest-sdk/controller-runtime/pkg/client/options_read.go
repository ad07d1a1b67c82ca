// SPDX-License-Identifier: Apache-2.0

package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// GetOptions are the options of Reader.Get.
type GetOptions struct {
	// DisableReadYourWritesConsistency has no effect; see the constant of that
	// name.
	DisableReadYourWritesConsistency bool
	// Raw has options of the API.
	Raw *metav1.GetOptions
	// UnsafeDisableDeepCopy has no effect, because each read decodes a separate
	// object.
	UnsafeDisableDeepCopy *bool
}

// ApplyOptions applies opts to o.
func (o *GetOptions) ApplyOptions(opts []GetOption) *GetOptions {
	return withOptions(o, opts, GetOption.ApplyToGet)
}

// ApplyToGet implements GetOption.
func (o *GetOptions) ApplyToGet(to *GetOptions) { merge(to, o) }

// AsGetOptions returns the options of the API.
func (o *GetOptions) AsGetOptions() *metav1.GetOptions {
	if o == nil || o.Raw == nil {
		return &metav1.GetOptions{}
	}
	return o.Raw
}

// ListOptions are the options of Reader.List.
type ListOptions struct {
	// DisableReadYourWritesConsistency has no effect; see the constant of that
	// name.
	DisableReadYourWritesConsistency bool
	// LabelSelector and FieldSelector select objects.
	LabelSelector labels.Selector
	FieldSelector fields.Selector
	// Namespace is the namespace to list. If empty, all namespaces are listed.
	Namespace string
	// Limit is the size of a page, and Continue asks for the next one.
	Limit    int64
	Continue string
	// UnsafeDisableDeepCopy has no effect, because each read decodes separate
	// objects.
	UnsafeDisableDeepCopy *bool
	// Raw has options of the API; the fields above override them.
	Raw *metav1.ListOptions
}

// ApplyOptions applies opts to o.
func (o *ListOptions) ApplyOptions(opts []ListOption) *ListOptions {
	return withOptions(o, opts, ListOption.ApplyToList)
}

// ApplyToList implements ListOption.
func (o *ListOptions) ApplyToList(to *ListOptions) {
	limit := to.Limit
	if merge(to, o); o.Limit < 0 {
		to.Limit = limit
	}
}

// AsListOptions returns the options of the API.
func (o *ListOptions) AsListOptions() *metav1.ListOptions {
	if o == nil {
		return &metav1.ListOptions{}
	}
	if o.Raw == nil {
		o.Raw = &metav1.ListOptions{}
	}
	if o.LabelSelector != nil {
		o.Raw.LabelSelector = o.LabelSelector.String()
	}
	if o.FieldSelector != nil {
		o.Raw.FieldSelector = o.FieldSelector.String()
	}
	if !o.Raw.Watch {
		o.Raw.Limit, o.Raw.Continue = o.Limit, o.Continue
	}
	return o.Raw
}

// selectsNothing reports whether a selector matches no object. The text of the
// selector does not show that.
func (o *ListOptions) selectsNothing() bool {
	if o.LabelSelector != nil {
		if _, selectable := o.LabelSelector.Requirements(); !selectable {
			return true
		}
	}
	return o.FieldSelector != nil && !o.FieldSelector.Empty() && len(o.FieldSelector.Requirements()) == 0
}

// MatchingLabels selects objects that have all of these labels.
type MatchingLabels map[string]string

// ApplyToList implements ListOption.
func (m MatchingLabels) ApplyToList(o *ListOptions) {
	selector := labels.SelectorFromValidatedSet(labels.Set(m))
	if o.LabelSelector == nil {
		o.LabelSelector = selector
		return
	}
	requirements, _ := selector.Requirements()
	o.LabelSelector = o.LabelSelector.Add(requirements...)
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (m MatchingLabels) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// HasLabels selects objects that have labels with all these keys.
type HasLabels []string

// ApplyToList implements ListOption.
func (m HasLabels) ApplyToList(o *ListOptions) {
	if o.LabelSelector == nil {
		o.LabelSelector = labels.NewSelector()
	}
	for _, key := range m {
		if r, err := labels.NewRequirement(key, selection.Exists, nil); err == nil {
			o.LabelSelector = o.LabelSelector.Add(*r)
		}
	}
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (m HasLabels) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// MatchingLabelsSelector selects objects by their labels. A nil selector
// selects no object.
type MatchingLabelsSelector struct{ labels.Selector }

// ApplyToList implements ListOption.
func (m MatchingLabelsSelector) ApplyToList(o *ListOptions) {
	if m.Selector == nil {
		m.Selector = labels.Nothing()
	}
	o.LabelSelector = m
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (m MatchingLabelsSelector) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	m.ApplyToList(&o.ListOptions)
}

// MatchingFields selects objects by fields, or by indexes of a FieldIndexer.
type MatchingFields fields.Set

// ApplyToList implements ListOption.
func (m MatchingFields) ApplyToList(o *ListOptions) {
	o.FieldSelector = fields.Set(m).AsSelector()
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (m MatchingFields) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// MatchingFieldsSelector is MatchingFields with a selector. A nil selector
// selects no object.
type MatchingFieldsSelector struct{ fields.Selector }

// ApplyToList implements ListOption.
func (m MatchingFieldsSelector) ApplyToList(o *ListOptions) {
	if m.Selector == nil {
		m.Selector = fields.Nothing()
	}
	o.FieldSelector = m
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (m MatchingFieldsSelector) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	m.ApplyToList(&o.ListOptions)
}

// InNamespace restricts a list to a namespace.
type InNamespace string

// ApplyToList implements ListOption.
func (n InNamespace) ApplyToList(o *ListOptions) { o.Namespace = string(n) }

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (n InNamespace) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { n.ApplyToList(&o.ListOptions) }

// AsSelector returns a field selector for the namespace.
func (n InNamespace) AsSelector() fields.Selector {
	return fields.SelectorFromSet(fields.Set{"metadata.namespace": string(n)})
}

// Limit is the size of a page.
type Limit int64

// ApplyToList implements ListOption.
func (l Limit) ApplyToList(o *ListOptions) { o.Limit = int64(l) }

// Continue asks for the next page of a list.
type Continue string

// ApplyToList implements ListOption.
func (c Continue) ApplyToList(o *ListOptions) { o.Continue = string(c) }

// UnsafeDisableDeepCopyOption has no effect, because each read decodes separate
// objects.
type UnsafeDisableDeepCopyOption bool

// UnsafeDisableDeepCopy is the option set to true.
const UnsafeDisableDeepCopy = UnsafeDisableDeepCopyOption(true)

// ApplyToGet implements GetOption.
func (d UnsafeDisableDeepCopyOption) ApplyToGet(o *GetOptions) {
	o.UnsafeDisableDeepCopy = (*bool)(&d)
}

// ApplyToList implements ListOption.
func (d UnsafeDisableDeepCopyOption) ApplyToList(o *ListOptions) {
	o.UnsafeDisableDeepCopy = (*bool)(&d)
}
