// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

const home = "home"

// world is a Finder of a few kinds; some of them do not exist yet.
type world []kinds.Kind

func newWorld() world {
	kind := func(group, kind string, namespaced bool) kinds.Kind {
		return kinds.Kind{Group: group, Version: "v1", Kind: kind, Resource: strings.ToLower(kind) + "s", Namespaced: namespaced}
	}
	return world{
		kind("", "Pod", true), kind("", "Secret", true), kind("", "Node", false), kind("", "Namespace", false),
		kind("example.dev", "Web", true), kind("example.dev", "Global", false),
		kind("later.dev", "Late", true), kind("later.dev", "LateGlobal", false),
	}
}

func later(k *kinds.Kind) bool { return k.Group == "later.dev" }

func (w world) find(is func(*kinds.Kind) bool) (kinds.Kind, bool) {
	i := slices.IndexFunc(w, func(k kinds.Kind) bool { return is(&k) })
	if i < 0 {
		return kinds.Kind{}, false
	}
	return w[i], true
}

func (w world) Named(_ context.Context, _, name string) (kinds.Kind, error) {
	if k, ok := w.find(func(k *kinds.Kind) bool { return k.Kind == name && !later(k) }); ok {
		return k, nil
	}
	return kinds.Kind{}, kinds.ErrUnknown
}

func (w world) Of(_ context.Context, watch *abi.Watch) (k kinds.Kind, pending bool, err error) {
	k, _ = w.find(func(k *kinds.Kind) bool { return k.Kind == watch.Kind && k.Group == watch.Group })
	switch {
	case !later(&k):
		return k, false, nil
	case watch.Optional:
		return kinds.Kind{}, true, nil
	}
	return k, false, kinds.ErrUnknown
}

func (w world) Namespaced(_ context.Context, group, resource string) bool {
	k, ok := w.find(func(k *kinds.Kind) bool { return k.Resource == resource && k.Group == group && !later(k) })
	return !ok || k.Namespaced
}

// random generates manifests and options from a seed.
type random struct {
	*rand.Rand
	world
}

func (r random) namespaces() (list []string) {
	for _, ns := range []string{home, "other", "kube-system", "*"} {
		if r.IntN(4) == 0 {
			list = append(list, ns)
		}
	}
	return list
}

func (r random) watch() abi.Watch {
	k := r.world[r.IntN(len(r.world))]
	return abi.Watch{
		Group: k.Group, Version: k.Version, Kind: k.Kind, Namespaces: r.namespaces(), Optional: later(&k) || r.IntN(3) == 0,
		FieldSelector: []string{"", "metadata.name=x", "metadata.namespace=other"}[r.IntN(3)],
		Map:           []string{abi.MapOwner, abi.MapFunc}[r.IntN(2)],
	}
}

func (r random) rule() abi.Capability {
	k := r.world[r.IntN(len(r.world))]
	c := abi.Capability{Group: k.Group, Resource: k.Resource, Verbs: []string{[]string{"get", "list", "create", "*"}[r.IntN(4)]}, Namespaces: r.namespaces()}
	if r.IntN(3) == 0 {
		c.Subresources = []string{"status"}
	}
	if r.IntN(3) == 0 {
		c.Names = []string{"x"}
	}
	return c
}

func several[T any](r random, n int, one func() T) (list []T) {
	for range r.IntN(n) {
		list = append(list, one())
	}
	return list
}

func (r random) manifest() *abi.Manifest {
	of := r.watch()
	m := &abi.Manifest{For: &of, Owns: several(r, 3, r.watch), Watches: several(r, 3, r.watch), Capabilities: several(r, 4, r.rule)}
	if r.IntN(3) == 0 {
		m.Finalizer = "example.dev/finalizer"
	}
	return m
}

func (r random) options() Options {
	name := func() string { return r.world[r.IntN(len(r.world))].Kind }
	o := Options{Confine: home}
	o.AllNamespaces = r.IntN(4) == 0
	for _, kind := range several(r, 2, name) {
		o.Owns = append(o.Owns, *v1alpha1.KindOf(kind))
	}
	switch r.IntN(3) {
	case 0:
		o.Namespaces = r.namespaces()
	case 1:
		o.Namespaces = []string{home}
	}
	if r.IntN(2) == 0 {
		o.For = v1alpha1.KindOf(name())
	}
	switch r.IntN(5) {
	case 0:
		o.Grant = ofManifest
	case 1:
		o.Grant.Everything = true
	case 2, 3:
		d := grant.Document{Capabilities: several(r, 10, r.rule), Finalizers: []string{"example.dev/finalizer"}}
		d.Capabilities = append(d.Capabilities, abi.Capability{Resource: "pods", Verbs: []string{"*"}}, abi.Capability{Group: "example.dev", Resource: "webs", Verbs: []string{"*"}})
		o.Grant = Grant{File: grant.File{d}, Path: "spec.grant"}
	}
	return o
}

// leaves describes where a watch leaves home, or is empty if it does not.
func leaves(k Watched) string {
	if !k.Namespaced || !slices.Equal(k.Watch.Namespaces, []string{home}) {
		return fmt.Sprintf("watch of %s (namespaced: %v) in %q", k.Name(), k.Namespaced, k.Watch.Namespaces)
	}
	return ""
}

// eachRequest yields all requests to the resources of the world, with and without a
// namespace.
func (w world) eachRequest(yield func(kubeapi.Attributes, kinds.Kind)) {
	for _, k := range w {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
			for _, ns := range []string{"", home, "other", "kube-system", "*"} {
				for _, sub := range []string{"", "status", "finalizers"} {
					for _, name := range []string{"", "x", home} {
						yield(kubeapi.Attributes{Verb: verb, Group: k.Group, Resource: k.Resource, Subresource: sub, Namespace: ns, Name: name}, k)
					}
				}
			}
		}
	}
}

// escapes lists the rights and watches of a plan outside of home.
func escapes(w world, p *Plan, kind Watched) (list []string) {
	for _, k := range append([]Watched{kind}, p.Related...) {
		if where := leaves(k); where != "" {
			list = append(list, where)
		}
	}
	for i := range p.Granted {
		if !slices.Equal(p.Granted[i].Namespaces, []string{home}) {
			list = append(list, "granted "+RuleText(&p.Granted[i]))
		}
	}
	w.eachRequest(func(a kubeapi.Attributes, _ kinds.Kind) {
		if a.Namespace != home && p.Policy.Allows(a) {
			list = append(list, fmt.Sprintf("%+v", a))
		}
	})
	return list
}

// TestConfine_NothingLeavesTheNamespace: whatever a module requests and whatever is
// granted, a confined plan has no watch and no right outside of the namespace, and none for
// a cluster-scoped kind; the same holds for a watch of a kind that is created later.
func TestConfine_NothingLeavesTheNamespace(t *testing.T) {
	planned, related, granted, came, refused := 0, 0, 0, 0, 0
	for seed := range uint64(20_000) {
		r := random{rand.New(rand.NewPCG(seed, 1)), newWorld()}
		m, o := r.manifest(), r.options()
		p := &Planner{Options: o, Controller: "home.web", Finder: r.world, Log: slog.New(slog.DiscardHandler)}
		kind, err := p.Kind(t.Context(), m)
		if err != nil {
			refused++
			continue
		}
		next, err := p.Plan(t.Context(), kind, m)
		if err != nil {
			refused++
			continue
		}
		planned++
		related += len(next.Related)
		granted += len(next.Granted)
		bad := escapes(r.world, next, kind)
		for _, k := range next.Pending {
			k.Kind, _ = r.find(func(found *kinds.Kind) bool { return found.Kind == k.Watch.Kind })
			if k, err = p.Narrow(t.Context(), p.Placed(kind, k)); err == nil {
				came++
				if where := leaves(k); where != "" {
					bad = append(bad, "later: "+where)
				}
			}
		}
		if len(bad) > 0 {
			t.Fatalf("seed %d: beyond %s:\n%s\nmanifest %+v\noptions %+v", seed, home, strings.Join(bad, "\n"), m, o)
		}
	}
	t.Logf("%d planned with %d watches, %d rules and %d kinds that came later; %d refused", planned, related, granted, came, refused)
	if planned < 1000 || related < 500 || granted < 500 || came < 100 || refused < 1000 {
		t.Error("the random manifests test little")
	}
}
