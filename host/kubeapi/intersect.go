// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
)

// writeVerbs are the verbs that the fields of a rule limit.
var writeVerbs = []string{VerbCreate, VerbUpdate, VerbPatch}

// Intersect returns rules for everything that both lists of rules allow, one for each pair with
// something in common.
func Intersect(a, b []abi.Capability) []abi.Capability {
	var both []abi.Capability
	for i := range a {
		for j := range b {
			if c, ok := intersect(&a[i], &b[j]); ok {
				both = append(both, c)
			}
		}
	}
	return both
}

func intersect(a, b *abi.Capability) (c abi.Capability, ok bool) {
	if a.Group != b.Group || a.Resource != b.Resource || (len(a.Subresources) == 0) != (len(b.Subresources) == 0) {
		return c, false
	}
	c.Group, c.Resource = a.Group, a.Resource
	if c.Verbs, ok = common(anyIsNone(a.Verbs), anyIsNone(b.Verbs)); !ok {
		return c, false
	}
	for _, list := range []struct {
		both *[]string
		a, b []string
	}{{&c.Subresources, a.Subresources, b.Subresources}, {&c.Namespaces, a.Namespaces, b.Namespaces}, {&c.Names, a.Names, b.Names}} {
		if *list.both, ok = common(list.a, list.b); !ok {
			return c, false
		}
	}
	if len(c.Verbs) == 0 {
		c.Verbs = []string{verbAll}
	}
	if c.Fields, ok = fieldpath.IntersectAll(a.Fields, b.Fields); !ok {
		// No field can be written, but the other verbs remain.
		c.Verbs = slices.DeleteFunc(SpellOut(c.Verbs), func(v string) bool { return slices.Contains(writeVerbs, v) })
	}
	return c, len(c.Verbs) > 0
}

// anyIsNone returns an empty list for all verbs.
func anyIsNone(verbs []string) []string {
	if slices.Contains(verbs, verbAll) {
		return nil
	}
	return verbs
}

// SpellOut returns a copy of verbs, with "*" replaced by all verbs.
func SpellOut(verbs []string) []string {
	if slices.Contains(verbs, verbAll) {
		return slices.Clone(allVerbs)
	}
	return slices.Clone(verbs)
}

// manyPairs is the maximum number of pairs that are compared one by one.
const manyPairs = 256

// common returns the common elements of two lists. An empty list means everything. ok is false if
// they have nothing in common.
func common(a, b []string) (both []string, ok bool) {
	switch {
	case len(a) == 0:
		return slices.Clone(b), true
	case len(b) == 0:
		return slices.Clone(a), true
	}
	has := func(s string) bool { return slices.Contains(b, s) }
	if len(a)*len(b) > manyPairs {
		set := make(map[string]bool, len(b))
		for _, s := range b {
			set[s] = true
		}
		has = func(s string) bool { return set[s] }
	}
	both = slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !has(s) })
	return both, len(both) > 0
}

// CheckRules returns the errors in rules of a manifest or a grant, joined.
func CheckRules(rules []abi.Capability) error {
	var errs []error
	for i := range rules {
		if rules[i].Resource == "" || len(rules[i].Verbs) == 0 {
			errs = append(errs, fmt.Errorf("capabilities[%d]: resource and verbs are required", i))
		}
		if _, err := fieldpath.ParseSet(rules[i].Fields); err != nil {
			errs = append(errs, fmt.Errorf("capabilities[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}
