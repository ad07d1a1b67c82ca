// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/internal/suggest"
)

// maxNear is the maximum number of suggestions in an error.
const maxNear = 3

// nearKinds returns the kinds that a user may have meant, the likeliest first, named by show.
func (s *snapshot) nearKinds(want reading, show func(*Kind) string) []string {
	type match struct {
		kind *Kind
		far  int
	}
	var found []match
	for i := range s.kinds {
		if far, ok := farness(&s.kinds[i], want); ok {
			found = append(found, match{&s.kinds[i], far})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Compare(a.far, b.far) })
	var names []string
	shown := map[string]bool{} // one version of each kind
	for _, m := range found {
		if !shown[m.kind.Name()] && len(names) < maxNear {
			names = append(names, show(m.kind))
		}
		shown[m.kind.Name()] = true
	}
	return names
}

// farness returns the number of typing errors between a name and a kind. ok is false if there are
// too many.
func farness(k *Kind, want reading) (far int, ok bool) {
	name := strings.ToLower(want.name)
	far = min(suggest.Distance(name, strings.ToLower(k.Resource)), suggest.Distance(name, strings.ToLower(k.Singular)), suggest.Distance(name, strings.ToLower(k.Kind)))
	for _, short := range k.ShortNames {
		if d := suggest.Distance(name, short); d == 0 { // CM; but po is no typing error for no
			far = 0
		}
	}
	if far > suggest.Slips(name) {
		return 0, false
	}
	if want.version != "" && want.version != k.Version {
		far++
	}
	if want.group == "" || want.group == k.Group {
		return far, true
	}
	d := suggest.Distance(want.group, k.Group)
	if far > 0 && d > suggest.Slips(want.group) {
		return 0, false // another name in another group
	}
	return far + 1 + min(d, maxNear), true
}
