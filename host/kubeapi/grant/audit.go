// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/fieldpath"
)

const (
	// maxNamespaces is the maximum number of namespaces in a learned rule, and maxSiblings of
	// fields with the same parent. Beyond it, the rule covers all of them.
	maxNamespaces = 10
	maxSiblings   = 8
)

// Audit derives from the requests of runs the minimal rights that allow them.
// It is safe for concurrent use.
type Audit struct {
	asked []abi.Capability

	mu   sync.Mutex
	used map[use]*learned // guarded by mu
}

var owners = fieldpath.NewPath("metadata", "ownerReferences")

// use is a unit of learning: one verb on one resource.
type use struct{ group, resource, subresource, verb string }

type learned struct {
	namespaces map[string]bool // if nil, all
	names      map[string]bool // if nil, all
	fields     map[string]fieldpath.Path
}

// NewAudit returns an empty audit. It learns names only if the capabilities of the manifest have
// names for them, because other objects may be arbitrarily many.
func NewAudit(asked []abi.Capability) *Audit { return &Audit{asked: asked, used: map[use]*learned{}} }

// Learn records an operation that was carried out, and reports whether it needs a right that is new
// to the audit.
func (a *Audit) Learn(e *kubeapi.Exchange) bool {
	if e.Err != nil || e.Status != abi.StatusOK {
		return false
	}
	fields := e.Fields()
	a.mu.Lock()
	defer a.mu.Unlock()
	fresh := false
	for _, verb := range a.verbsOf(e) {
		u := use{e.Kind.Group, e.Kind.Resource, e.Subresource, verb}
		l := a.used[u]
		if l == nil {
			l = &learned{namespaces: map[string]bool{}, names: map[string]bool{}, fields: map[string]fieldpath.Path{}}
			a.used[u], fresh = l, true
		}
		fresh = l.named(e.Key.Name, a.namesFor(u)) || fresh
		fresh = l.in(e.Key.Namespace) || fresh
		fresh = l.touch(fields) || fresh
	}
	return fresh
}

// verbsOf adds create to the verbs of an apply that created an object. Otherwise it could not be
// distinguished from other applies.
func (a *Audit) verbsOf(e *kubeapi.Exchange) []string {
	verbs := e.Verbs()
	if e.Op == abi.OpAPIApply && e.Subresource == "" {
		verbs = append(verbs, kubeapi.VerbCreate)
	}
	return verbs
}

// namesFor returns the names to which the manifest limits a use. It is empty if there is no limit.
func (a *Audit) namesFor(u use) (names []string) {
	for i := range a.asked {
		c := &a.asked[i]
		same := c.Group == u.group && c.Resource == u.resource && slices.Contains(kubeapi.OrAny(c.Subresources), u.subresource)
		if !same || !slices.Contains(kubeapi.SpellOut(c.Verbs), u.verb) {
			continue
		}
		if len(c.Names) == 0 {
			return nil
		}
		names = append(names, c.Names...)
	}
	return names
}

func (l *learned) named(name string, asked []string) bool {
	if l.names == nil || l.names[name] {
		return false
	}
	if l.names[name] = true; !slices.Contains(asked, name) {
		l.names = nil
	}
	return true
}

func (l *learned) in(namespace string) bool {
	if l.namespaces == nil || l.namespaces[namespace] {
		return false
	}
	if l.namespaces[namespace] = true; namespace == "" || len(l.namespaces) > maxNamespaces {
		l.namespaces = nil
	}
	return true
}

// touch adds fields, and replaces too many siblings by their parent.
func (l *learned) touch(fields []fieldpath.Path) (fresh bool) {
	for _, f := range fields {
		if f.Within(owners) {
			f = owners // each object has others
		}
		if !l.covers(f) {
			l.fields[f.String()] = f
			fresh = true
		}
	}
	for fresh {
		siblings := map[string][]string{}
		for text, f := range l.fields {
			if f.Len() > 1 {
				parent := f.Parent().String()
				siblings[parent] = append(siblings[parent], text)
			}
		}
		crowded := slices.SortedFunc(maps.Keys(siblings), func(x, y string) int { return cmp.Compare(len(siblings[y]), len(siblings[x])) })
		if len(crowded) == 0 || len(siblings[crowded[0]]) <= maxSiblings {
			break
		}
		l.merge(l.fields[siblings[crowded[0]][0]].Parent())
	}
	return fresh
}

// merge replaces all fields below a parent by the parent.
func (l *learned) merge(parent fieldpath.Path) {
	text := parent.String()
	set, err := fieldpath.ParseSet([]string{text})
	if err != nil {
		return // it comes from an object, so it is a valid pattern
	}
	maps.DeleteFunc(l.fields, func(_ string, f fieldpath.Path) bool { covered, _ := set.Covers(f); return covered })
	l.fields[text] = parent
}

func (l *learned) covers(f fieldpath.Path) bool {
	if _, ok := l.fields[f.String()]; ok {
		return true
	}
	set, _ := fieldpath.ParseSet(slices.Collect(maps.Keys(l.fields)))
	covered, _ := set.Covers(f)
	return covered
}

// Rules returns the learned rules: one for each combination of resource, namespaces, names and
// fields.
func (a *Audit) Rules() []abi.Capability {
	a.mu.Lock()
	defer a.mu.Unlock()
	var rules []abi.Capability
	for _, u := range slices.SortedFunc(maps.Keys(a.used), compareUses) {
		l := a.used[u]
		c := abi.Capability{Group: u.group, Resource: u.resource, Verbs: []string{u.verb}}
		if u.subresource != "" {
			c.Subresources = []string{u.subresource}
		}
		c.Names = slices.Sorted(maps.Keys(l.names))
		c.Namespaces, c.Fields = slices.Sorted(maps.Keys(l.namespaces)), slices.Sorted(maps.Keys(l.fields))
		if n := len(rules); n > 0 && sameButVerbs(&rules[n-1], &c) {
			rules[n-1].Verbs = append(rules[n-1].Verbs, u.verb)
			continue
		}
		rules = append(rules, c)
	}
	return rules
}

func compareUses(a, b use) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.subresource, b.subresource), byVerb(a.verb, b.verb))
}

func sameButVerbs(a, b *abi.Capability) bool {
	return a.Group == b.Group && a.Resource == b.Resource && slices.Equal(a.Subresources, b.Subresources) &&
		slices.Equal(a.Namespaces, b.Namespaces) && slices.Equal(a.Names, b.Names) && slices.Equal(a.Fields, b.Fields)
}
