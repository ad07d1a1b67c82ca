package fieldpath

import "slices"

// Covers reports whether a pattern covers a field: all its steps are those that
// the field starts with. The right to any field of an item includes its key
// fields. By says whether all patterns that do lead into a list: then it is right
// only if the list is one of items to the API server too.
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

// Missing returns the first fields that no pattern covers, at most limit of
// them, and whether some of the others are covered by item only; see Covers.
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

// coverage is whether patterns cover a field.
type coverage uint8

const (
	uncovered coverage = iota
	coveredByItem
	covered
)

// matcher compares fields with the patterns of a set, step by step. It keeps what
// it knows of the steps that a field shares with the one before it, so that a
// walk costs by the values that it goes through, not by their depth.
type matcher struct {
	set *Set
	// prefixes has one element for the empty path, and for each step of the field.
	prefixes []prefix
}

// prefix is what is known of the first steps of a field.
type prefix struct {
	serial uint64 // of the last of these steps
	// reached is whether a pattern that ends in these steps covers all below.
	reached coverage
	inItem  bool // one of the steps leads to an item
	// open are the patterns that begin with these steps and have more.
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

// shared returns how many steps of a field are known.
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

// step finds out about step i of a field.
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

// sort puts all patterns where they belong for no step.
func (m *matcher) sort(p *prefix, steps int) {
	for at := range m.set.patterns {
		m.enter(p, int32(at), steps) //nolint:gosec // a set is much smaller
	}
}

// enter adds a pattern that begins with so many steps of a field.
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

// covers reports whether a step of a pattern means a step of a field.
func (s *step) covers(got *step) bool {
	switch {
	case s.any:
		return true
	case s.match != nil:
		return s.matches(got.item)
	}
	return got.item == nil && got.key == s.key
}

// keyOfItem reports whether a field is what an item is known by in a pattern that
// goes on from this item.
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
