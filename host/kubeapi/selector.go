// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/packed"
)

// objectSelector selects objects of the cache.
type objectSelector struct {
	labels labels.Selector
	fields fieldTerms
	ctx    context.Context //nolint:containedctx // after its end, nothing is selected, so that a search of a large cache ends
}

func (s *objectSelector) match(l labels.Labels, object []byte) bool {
	return s.ctx.Err() == nil && s.labels.Matches(l) && s.fields.match(object)
}

func parseSelectors(ctx context.Context, byLabel, byField string) (*objectSelector, error) {
	selector, err := labels.Parse(byLabel)
	if err != nil {
		return nil, badf("labelSelector: %s", shorten(err.Error()))
	}
	where, err := parseFields(byField)
	if err != nil {
		return nil, err
	}
	requirements, _ := selector.Requirements()
	if n := len(requirements) + len(where); n > maxRequirements {
		return nil, badf("labelSelector and fieldSelector: have %d requirements, the limit is %d", n, maxRequirements)
	}
	return &objectSelector{selector, where, ctx}, nil
}

// fieldTerm is one term of a field selector: the text at the path must equal the value, or must
// not.
type fieldTerm struct {
	path  []string
	value string
	not   bool
}

type fieldTerms []fieldTerm

func parseFields(text string) (fieldTerms, error) {
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return nil, badf("fieldSelector: %s", shorten(err.Error()))
	}
	var terms fieldTerms
	for _, r := range selector.Requirements() {
		terms = append(terms, fieldTerm{strings.Split(r.Field, "."), r.Value, r.Operator == selection.NotEquals})
	}
	return terms, nil
}

func (t fieldTerms) match(object []byte) bool {
	for i := range t {
		if (t[i].text(object) == t[i].value) == t[i].not {
			return false
		}
	}
	return true
}

// text returns the text at the path.
func (t *fieldTerm) text(object []byte) string {
	for _, key := range t.path {
		object = packed.Find(object, key)
	}
	return textOf(object)
}

// index returns the index of the first field that must have a value, or nil.
func (t fieldTerms) index(scope any) *abi.Index {
	for i := range t {
		if !t[i].not {
			of := func(object []byte) []string { return []string{t[i].text(object)} }
			return &abi.Index{Scope: scope, Name: strings.Join(t[i].path, "."), Value: t[i].value, Of: of}
		}
	}
	return nil
}

// FieldIndex returns the index for the objects whose text at a path, such as "spec.nodeName",
// equals the value.
func FieldIndex(scope any, path, value string) *abi.Index {
	return fieldTerms{{path: strings.Split(path, "."), value: value}}.index(scope)
}

// textOf returns a text, a number or a bool in the form of a selector. It is empty for everything
// else, and for missing values.
func textOf(b []byte) string {
	form := packed.FormOf(b)
	if form == packed.Text {
		c := packed.At(b)
		return string(c.Text())
	}
	if form == packed.Map || form == packed.Array || packed.IsNil(b) {
		return ""
	}
	v, err := abi.DecodeValue(b)
	if err != nil {
		return ""
	}
	return fmt.Sprint(v)
}
