// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/internal/suggest"
	"github.com/wasmctl/wasmctl/internal/text"
)

// lookup finds the kind with a name.
//
// It interprets names like kubectl: a plural or singular takes precedence over a short name, and
// that over a kind. Only in short names, case matters. The start of a group suffices if no group
// has exactly that name. Without a version, the preferred one is used. There is one difference: if
// a name without a group matches kinds of several groups, kubectl silently takes one. Here it is an
// *AmbiguousError, unless the first one is in the core group, which has no name, or all are part of
// Kubernetes.
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
		show = func(k *Kind) string { return k.String() } // the version may be the error
	}
	return Kind{}, s.unknown(name, want, show)
}

// lookupGVK finds a kind by its exact name. An empty version means the preferred one of the
// versions with the kind.
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

// gvkName returns a kind in the notation of users.
func gvkName(gvk schema.GroupVersionKind) string {
	if gvk.Version == "" {
		return gvk.GroupKind().String()
	}
	return gvk.GroupVersion().String() + "/" + gvk.Kind
}

// find returns the indices of the kinds that match one reading of a name.
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

// BuiltIn reports whether the group of a kind is part of Kubernetes or reserved for it, so that not
// all of its kinds are custom resources.
func (k *Kind) BuiltIn() bool { return isBuiltIn(k.Group) }

// isBuiltIn reports whether a group is part of Kubernetes or reserved for it.
func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// mayArrive reports whether a CustomResourceDefinition could add a kind of this group. Some groups
// under k8s.io are part of Kubernetes, and others are installed (gateway.networking.k8s.io). A
// group that is almost spelled like an existing one is treated as a typo.
func (s *snapshot) mayArrive(group string) bool {
	if !isBuiltIn(group) {
		return true
	}
	if !strings.Contains(group, ".") {
		return false
	}
	return !slices.ContainsFunc(s.kinds, func(k Kind) bool { return suggest.Distance(k.Group, group) <= suggest.Slips(group) })
}
