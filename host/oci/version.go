package oci

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// version is one of three numbers. Versions with a suffix, such as -rc.1, are
// before a release, and no range selects them.
type version [3]uint32

var (
	versionForm = regexp.MustCompile(`^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})$`)
	rangeForm   = regexp.MustCompile(`^(?:([~^])v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?|v?(\d{1,9})(?:\.(\d{1,9}))?\.[xX*]|\*)$`)
)

// isRange reports whether a tag is meant as a range. A tag can have an x, but one
// that ends in .x is no version.
func isRange(tag string) bool {
	return strings.HasPrefix(tag, "^") || strings.HasPrefix(tag, "~") || rangeForm.MatchString(tag)
}

// versions are from one, with it, to another, without it.
type versions struct{ from, to version }

// parseRange reads ^1.2.3 (below 2.0.0; of 0.2.3 below 0.3.0), ~1.2.3 (below
// 1.3.0), 1.x and 1.2.x, and * for all.
func parseRange(s string) (versions, error) {
	m := rangeForm.FindStringSubmatch(s)
	if m == nil {
		return versions{}, fmt.Errorf("range %q: want ^1.2.3, ~1.2.3, 1.x, 1.2.x or *", s)
	}
	if s == "*" {
		return versions{to: version{1 << 31}}, nil
	}
	kind, parts := m[1], m[2:5]
	if kind == "" {
		kind, parts = "~", []string{m[5], m[6], ""}
	}
	var from version
	given := 0
	for i, part := range parts {
		if part != "" {
			from[i], given = number(part), i+1
		}
	}
	last := min(given-1, 1) // of ~: what may not change, as far as it is given
	if kind == "^" {
		for last = 0; last < given-1 && from[last] == 0; last++ {
		}
	}
	to := version{}
	copy(to[:], from[:last+1])
	to[last]++
	return versions{from, to}, nil
}

func number(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32) // of at most nine digits
	return uint32(n)
}

// highest returns the tag with the highest version of a range, "" where there is
// none. Of two tags of one version the first in the alphabet wins.
func (v versions) highest(tags []string) (best string) {
	var most version
	for _, tag := range slices.Sorted(slices.Values(tags)) {
		m := versionForm.FindStringSubmatch(tag)
		if m == nil {
			continue
		}
		is := version{number(m[1]), number(m[2]), number(m[3])}
		if slices.Compare(is[:], v.from[:]) < 0 || slices.Compare(is[:], v.to[:]) >= 0 {
			continue
		}
		if best == "" || slices.Compare(is[:], most[:]) > 0 {
			best, most = tag, is
		}
	}
	return best
}
