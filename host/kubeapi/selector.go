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

// parseSelectors returns what selects the objects of the cache. It selects nothing
// once ctx is over, so that a search of a large cache ends.
func parseSelectors(ctx context.Context, byLabel, byField string) (func(l labels.Labels, object []byte) bool, error) {
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
	return func(l labels.Labels, object []byte) bool {
		return ctx.Err() == nil && selector.Matches(l) && where.match(object)
	}, nil
}

// fieldTerm is one term of a field selector: the text at the path is the value, or
// is not.
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
		at := object
		for _, key := range t[i].path {
			at = packed.Find(at, key)
		}
		if (textOf(at) == t[i].value) == t[i].not {
			return false
		}
	}
	return true
}

// textOf returns a text, a number or a bool as a selector has it; empty for
// anything else, also for what is not there.
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
