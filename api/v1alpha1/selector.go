// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Selector selects objects by their labels. As text, it has the form that kubectl accepts.
// It has the operators of Kubernetes and also Gt and Lt.
type Selector metav1.LabelSelector

// operators maps the operators of a parsed selector to those of a Selector.
var operators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn, selection.In: metav1.LabelSelectorOpIn,
	selection.NotEquals: metav1.LabelSelectorOpNotIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
	selection.GreaterThan: opGreater, selection.LessThan: opLess,
}

const (
	opGreater metav1.LabelSelectorOperator = "Gt"
	opLess    metav1.LabelSelectorOperator = "Lt"
	opText    metav1.LabelSelectorOperator = "Text" // the key is a text that is not a valid selector
)

// SelectorOf parses a selector; the result for an empty text is nil.
func SelectorOf(text string) (*Selector, error) {
	parsed, err := labels.Parse(text)
	if err != nil || text == "" {
		return nil, err
	}
	s := &Selector{}
	requirements, _ := parsed.Requirements()
	for _, r := range requirements {
		values := slices.Sorted(slices.Values(r.Values().UnsortedList()))
		if _, twice := s.MatchLabels[r.Key()]; !twice && len(values) == 1 && (r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals) {
			if s.MatchLabels == nil {
				s.MatchLabels = map[string]string{}
			}
			s.MatchLabels[r.Key()] = values[0]
			continue
		}
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key(), Operator: operators[r.Operator()], Values: values,
		})
	}
	return s, nil
}

// Labels returns the selector of labels. A nil Selector selects everything.
func (s *Selector) Labels() (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	rest := metav1.LabelSelector{MatchLabels: s.MatchLabels}
	var compared []labels.Requirement
	for _, e := range s.MatchExpressions {
		if e.Operator == opText {
			if _, err := labels.Parse(e.Key); err != nil {
				return nil, err
			}
		}
		op := map[metav1.LabelSelectorOperator]selection.Operator{opGreater: selection.GreaterThan, opLess: selection.LessThan}[e.Operator]
		if op == "" {
			rest.MatchExpressions = append(rest.MatchExpressions, e)
			continue
		}
		r, err := labels.NewRequirement(e.Key, op, e.Values)
		if err != nil {
			return nil, err
		}
		compared = append(compared, *r)
	}
	selector, err := metav1.LabelSelectorAsSelector(&rest)
	if err != nil {
		return nil, err
	}
	return selector.Add(compared...), nil
}

// String returns the selector as text, or an empty text for one that selects everything.
func (s *Selector) String() string {
	parsed, err := s.Labels()
	switch {
	case err == nil:
		return parsed.String()
	case len(s.MatchExpressions) == 1 && s.MatchExpressions[0].Operator == opText:
		return s.MatchExpressions[0].Key
	}
	return ""
}

// UnmarshalJSON parses an object, or a selector as text. An invalid text is reported by
// Labels, so that its error appears together with others.
func (s *Selector) UnmarshalJSON(content []byte) error {
	text, ok := textIn(content)
	if !ok {
		*s = Selector{}
		return json.Unmarshal(content, (*metav1.LabelSelector)(s))
	}
	parsed, err := SelectorOf(text)
	switch {
	case err != nil:
		*s = Selector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: text, Operator: opText}}}
	case parsed == nil:
		*s = Selector{}
	default:
		*s = *parsed
	}
	return nil
}
