// SPDX-License-Identifier: Apache-2.0

package fieldpath

import "slices"

// Covers reports whether a pattern covers a field: the field starts with all steps of the pattern.
// The right to any field of an item includes its key fields. byItem reports whether all covering
// patterns lead into a list. Then the result is valid only if the API server also treats the list
// as one of items.
func (s *Set) Covers(field Path) (covers, byItem bool) {
	m := matcher{set: s}
	switch m.match(field) {
	case coveredByItem:
		return true, true
	case covered:
		return true, false
	default:
		return false, false
	}
}

// Missing returns the first fields that no pattern covers, up to limit, and whether some of the
// others are covered only by item; see Covers.
func (s *Set) Missing(fields Fields, limit int) (missing []Path, byItem bool) {
	m := matcher{set: s}
	for f := range fields {
		switch m.match(f) {
		case coveredByItem:
			byItem = true
		case uncovered:
			if missing = append(missing, f.Clone()); len(missing) == limit {
				return missing, byItem
			}
		case covered:
		}
	}
	return missing, byItem
}

// coverage is how patterns cover a field.
type coverage uint8

const (
	uncovered coverage = iota
	coveredByItem
	covered
)

// matcher compares fields with the patterns of a set, step by step. It reuses the results for the
// steps that a field shares with the previous one, so that the cost of a walk depends on the number
// of values, and not on their depth.
type matcher struct {
	set *Set
	// prefixes has one element for the empty path, and for each step of the field.
	prefixes []prefix
}

// prefix is the result for the first steps of a field.
type prefix struct {
	serial uint64 // of the last of these steps
	// reached reports whether a pattern that ends with these steps covers everything below.
	reached coverage
	inItem  bool // one of the steps leads to an item
	// open are the patterns that begin with these steps and continue.
	open []int32
}

func (m *matcher) match(field Path) coverage {
	known := m.shared(field)
	for i := known; i < len(field); i++ {
		m.step(i, &field[i])
	}
	last := &m.prefixes[len(field)]
	if last.reached == uncovered && m.keyOfItem(field) {
		return coveredByItem
	}
	return last.reached
}

// shared returns the number of steps of a field whose result is known.
func (m *matcher) shared(field Path) int {
	if len(m.prefixes) == 0 {
		m.prefixes = append(m.prefixes, prefix{})
		m.sort(&m.prefixes[0], 0)
	}
	n := min(len(field), len(m.prefixes)-1)
	for n > 0 && (field[n-1].serial == 0 || m.prefixes[n].serial != field[n-1].serial) {
		n--
	}
	return n
}

// step computes the result for step i of a field.
func (m *matcher) step(i int, got *step) {
	if len(m.prefixes) == i+1 {
		m.prefixes = append(m.prefixes, prefix{})
	}
	before, p := &m.prefixes[i], &m.prefixes[i+1]
	p.serial, p.reached, p.inItem = got.serial, before.reached, before.inItem || got.item != nil
	p.open = p.open[:0]
	for _, at := range before.open {
		pattern := m.set.patterns[at]
		if !pattern[i].covers(got) {
			continue
		}
		m.enter(p, at, i+1)
	}
}

// sort computes the result for no steps from all patterns.
func (m *matcher) sort(p *prefix, steps int) {
	for at := range m.set.patterns {
		m.enter(p, int32(at), steps) //nolint:gosec // a set is much smaller
	}
}

// enter adds a pattern that begins with the first steps of a field.
func (m *matcher) enter(p *prefix, at int32, steps int) {
	switch {
	case len(m.set.patterns[at]) > steps:
		p.open = append(p.open, at)
	case !p.inItem:
		p.reached = covered
	default:
		p.reached = max(p.reached, coveredByItem)
	}
}

// covers reports whether a step of a pattern matches a step of a field.
func (s *step) covers(got *step) bool {
	switch {
	case s.any:
		return true
	case s.match != nil:
		return s.matches(got.item)
	}
	return got.item == nil && got.key == s.key
}

// keyOfItem reports whether a field is the key of an item in a pattern that continues from this
// item.
func (m *matcher) keyOfItem(field Path) bool {
	n := len(field)
	if n < 2 || field[n-1].item != nil {
		return false
	}
	return slices.ContainsFunc(m.prefixes[n-1].open, func(at int32) bool {
		_, known := m.set.patterns[at][n-2].match[field[n-1].key]
		return known
	})
}
