// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"errors"
	"maps"
	"slices"
)

// Set is a set of patterns. It never changes.
type Set struct{ patterns []Path }

// ParseSet reads patterns. If there is an error, the set has the valid ones.
func ParseSet(patterns []string) (*Set, error) {
	s := &Set{}
	var errs []error
	for _, text := range patterns {
		p, err := Parse(text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.patterns = append(s.patterns, p)
	}
	return s, errors.Join(errs...)
}

func (s *step) matches(item map[string]any) bool {
	if item == nil {
		return false
	}
	for key, want := range s.match {
		if got, ok := text(item[key]); !ok || got != want {
			return false
		}
	}
	return true
}

// Intersect returns the pattern that covers the fields that two patterns both cover. ok is false if
// there are none.
func Intersect(a, b Path) (both Path, ok bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	both = make(Path, 0, len(a))
	for i := range b {
		s, ok := unify(&a[i], &b[i])
		if !ok {
			return nil, false
		}
		both = append(both, s)
	}
	return append(both, a[len(b):]...), true
}

func unify(a, b *step) (step, bool) {
	switch {
	case a.any:
		return *b, true
	case b.any:
		return *a, true
	case a.match == nil && b.match == nil:
		return *a, a.key == b.key
	case a.match == nil || b.match == nil:
		return step{}, false
	}
	match := maps.Clone(a.match)
	for key, value := range b.match {
		if other, ok := match[key]; ok && other != value {
			return step{}, false
		}
		match[key] = value
	}
	return step{match: match}, true
}

// IntersectAll returns the intersections of all pairs of patterns, as text. An empty list means all
// fields. ok is false if nothing is left.
func IntersectAll(a, b []string) (both []string, ok bool) {
	switch {
	case len(a) == 0:
		return b, true
	case len(b) == 0:
		return a, true
	}
	as, _ := ParseSet(a) // an invalid pattern covers nothing
	bs, _ := ParseSet(b)
	seen := map[string]bool{}
	for _, x := range as.patterns {
		for _, y := range bs.patterns {
			p, ok := Intersect(x, y)
			if text := p.String(); ok && !seen[text] {
				seen[text] = true
				both = append(both, text)
			}
		}
	}
	return both, len(both) > 0
}

// Includes reports whether each pattern of another set lies within one of this set.
func (s *Set) Includes(other *Set) bool {
	for _, p := range other.patterns {
		if !slices.ContainsFunc(s.patterns, func(q Path) bool { return lies(p, q) }) {
			return false
		}
	}
	return true
}

// lies reports whether everything that a pattern covers is covered by another.
func lies(p, within Path) bool {
	if len(p) < len(within) {
		return false
	}
	for i := range within {
		switch q := &within[i]; {
		case q.any:
		case p[i].any || (q.match == nil) != (p[i].match == nil):
			return false
		case q.match == nil:
			if q.key != p[i].key {
				return false
			}
		default:
			for key, want := range q.match {
				if got, ok := p[i].match[key]; !ok || got != want {
					return false
				}
			}
		}
	}
	return true
}

// Union returns the set of all patterns of several sets.
func Union(sets ...*Set) *Set {
	u := &Set{}
	for _, s := range sets {
		u.patterns = append(u.patterns, s.patterns...)
	}
	return u
}
