package kubeapi

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear is how many near matches an error names.
const maxNear = 3

// nearKinds returns the kinds that a user may have meant, the likeliest first,
// as show names them.
func (s *snapshot) nearKinds(want kindName, show func(*Kind) string) []string {
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

// farness says how many slips of the finger lie between a name and a kind; ok
// is false where it is too many for a slip.
func farness(k *Kind, want kindName) (far int, ok bool) {
	name := strings.ToLower(want.name)
	far = min(distance(name, strings.ToLower(k.Resource)), distance(name, strings.ToLower(k.Singular)), distance(name, strings.ToLower(k.Kind)))
	for _, short := range k.ShortNames {
		if d := distance(name, short); d == 0 { // CM; but po is no slip for no
			far = 0
		}
	}
	if far > slips(name) {
		return 0, false
	}
	if want.version != "" && want.version != k.Version {
		far++
	}
	if want.group == "" || want.group == k.Group {
		return far, true
	}
	d := distance(want.group, k.Group)
	if far > 0 && d > slips(want.group) {
		return 0, false // another name in another group
	}
	return far + 1 + min(d, maxNear), true
}

// slips is how many slips of the finger a word of this length may have.
func slips(word string) int { return min(3, max(1, len(word)/4)) }

// distance counts the letters that must be put in, taken out, changed or
// swapped with their neighbour to make b of a (optimal string alignment).
func distance(a, b string) int {
	if abs := len(a) - len(b); abs > 3 || abs < -3 {
		return max(len(a), len(b)) // further than any slip; saves the table
	}
	var before, prev, cur []int
	prev = make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur = make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev = prev, cur
	}
	return prev[len(b)]
}
