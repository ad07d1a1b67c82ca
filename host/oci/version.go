// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// rangeForm matches the ranges that references support. Tags cannot have the characters of others.
var rangeForm = regexp.MustCompile(`^(?:[~^]v?\d{1,9}(?:\.\d{1,9}){0,2}|v?\d{1,9}(?:\.\d{1,9})?\.[xX*]|\*)$`)

// isRange reports whether a tag is meant as a range. A tag can have an x, but a tag that ends with
// .x is not a version.
func isRange(tag string) bool {
	return strings.HasPrefix(tag, "^") || strings.HasPrefix(tag, "~") || rangeForm.MatchString(tag)
}

// parseRange reads ^1.2.3 (below 2.0.0; for 0.2.3, below 0.3.0), ~1.2.3 (below 1.3.0), 1.x and
// 1.2.x, and * for all. No range selects versions with a suffix, such as -rc.1.
func parseRange(s string) (*semver.Constraints, error) {
	if !rangeForm.MatchString(s) {
		return nil, fmt.Errorf("range %q: want ^1.2.3, ~1.2.3, 1.x, 1.2.x or *", s)
	}
	if s == "~0.0.0" || s == "~v0.0.0" {
		s = "0.0.x" // the library treats this one like *
	}
	return semver.NewConstraint(s)
}

// highest returns the tag with the highest version of a range, or "". If two tags have the same
// version, the first one in alphabetical order wins.
func highest(in *semver.Constraints, tags []string) (best string) {
	var most *semver.Version
	for _, tag := range slices.Sorted(slices.Values(tags)) {
		v, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
		if err == nil && in.Check(v) && (most == nil || v.GreaterThan(most)) {
			best, most = tag, v
		}
	}
	return best
}
