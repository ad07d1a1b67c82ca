package kinds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/internal/near"
	"github.com/wasmctl/wasmctl/internal/text"
)

// lookup finds the kind that a name means.
//
// It reads names as kubectl does: a plural or singular comes before a short
// name, that before a kind; case matters in short names only; a group may be
// named by its start where no group has exactly that name; without a version
// the preferred one is taken. It differs in one thing: where a name without a
// group means kinds of several groups, kubectl silently takes one. This is an
// *AmbiguousError, unless the first is of the core group, which has no name, or
// all are Kubernetes' own.
func (s *snapshot) lookup(name string) (Kind, error) {
	readings, err := parseName(name)
	if err != nil {
		return Kind{}, err
	}
	for _, want := range readings {
		if found := s.find(want); len(found) > 0 {
			return s.choose(name, want, found)
		}
	}
	want := likeliest(readings)
	show := func(k *Kind) string { return k.Name() }
	if want.version != "" {
		show = func(k *Kind) string { return k.String() } // the version may be what is wrong
	}
	return Kind{}, s.unknown(name, want, show)
}

// lookupGVK finds a kind by its exact name. An empty version is the preferred
// one among those that have the kind.
func (s *snapshot) lookupGVK(gvk schema.GroupVersionKind) (Kind, error) {
	if gvk.Version != "" {
		if i, ok := s.byGVK[gvk]; ok {
			return s.kinds[i], nil
		}
	} else {
		for _, i := range s.byKind[strings.ToLower(gvk.Kind)] {
			if k := s.kinds[i]; k.Group == gvk.Group && k.Kind == gvk.Kind {
				return k, nil
			}
		}
	}
	want := reading{name: gvk.Kind, version: gvk.Version, group: gvk.Group, exact: true}
	return Kind{}, s.unknown(gvkName(gvk), want, func(k *Kind) string { return gvkName(k.GVK()) })
}

// gvkName returns a kind as a user would write it.
func gvkName(gvk schema.GroupVersionKind) string {
	if gvk.Version == "" {
		return gvk.GroupKind().String()
	}
	return gvk.GroupVersion().String() + "/" + gvk.Kind
}

// find returns the indices of the kinds that one reading of a name means.
func (s *snapshot) find(want reading) []int {
	lower := strings.ToLower(want.name)
	for _, candidates := range [][]int{s.byName[lower], s.byShort[want.name], s.byKind[lower]} {
		exact := s.filter(candidates, func(k *Kind) bool {
			return (want.version == "" || k.Version == want.version) && (k.Group == want.group || want.group == "" && !want.exact)
		})
		if len(exact) > 0 {
			return exact
		}
		if want.exact {
			continue
		}
		prefixed := s.filter(candidates, func(k *Kind) bool { return strings.HasPrefix(k.Group, want.group) })
		if len(prefixed) > 0 {
			return prefixed
		}
	}
	return nil
}

func (s *snapshot) filter(list []int, keep func(*Kind) bool) []int {
	var kept []int
	for _, i := range list {
		if keep(&s.kinds[i]) {
			kept = append(kept, i)
		}
	}
	return kept
}

func (s *snapshot) choose(name string, want reading, found []int) (Kind, error) {
	first := s.kinds[found[0]]
	if want.exact || first.Group == "" {
		return first, nil
	}
	var choices []string
	for _, i := range found {
		if isBuiltIn(first.Group) && isBuiltIn(s.kinds[i].Group) && i != found[0] {
			continue
		}
		if n := s.kinds[i].Name(); !slices.Contains(choices, n) {
			choices = append(choices, n)
		}
	}
	if len(choices) > 1 {
		return Kind{}, &AmbiguousError{Name: name, Choices: choices}
	}
	return first, nil
}

func (s *snapshot) unknown(name string, want reading, show func(*Kind) string) error {
	return &UnknownError{Name: text.Shorten(name, 200), Near: s.nearKinds(want, show), MayArrive: s.mayArrive(want.group)}
}

// BuiltIn reports whether the group of a kind is one that comes with Kubernetes,
// or that Kubernetes keeps for itself: its kinds are not all custom resources.
func (k *Kind) BuiltIn() bool { return isBuiltIn(k.Group) }

// isBuiltIn reports whether a group is one that comes with Kubernetes, or that
// Kubernetes keeps for itself.
func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// mayArrive reports whether a CustomResourceDefinition could bring a kind of
// this group. Under k8s.io there are both groups that come with Kubernetes and
// groups that are installed (gateway.networking.k8s.io): one that is spelled
// almost like an existing group is treated as a typo.
func (s *snapshot) mayArrive(group string) bool {
	if !isBuiltIn(group) {
		return true
	}
	if !strings.Contains(group, ".") {
		return false
	}
	return !slices.ContainsFunc(s.kinds, func(k Kind) bool { return near.Distance(k.Group, group) <= near.Slips(group) })
}
