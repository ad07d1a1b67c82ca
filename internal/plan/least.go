// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
)

// Least has the minimal rights that a controller needs, except those for events and a
// Lease.
type Least struct {
	Rules []abi.Capability
	// Grant are the capabilities that a grant must allow so that nothing is refused to the
	// module, and Finalizers are the finalizers that it must name.
	Grant      []abi.Capability
	Finalizers []string
	// Namespaces are the namespaces in which the reconciled kind is watched; if empty, all.
	Namespaces []string
	// Converts are the names of the CRDs whose objects the module converts.
	Converts []string
}

// Asking is a module that asks for rights. CanCall reports whether it imports an operation.
// If Manifest is nil, it is empty. Signers are the fingerprints of the keys that signed it.
type Asking struct {
	Digest   string
	Signers  []string
	Manifest *abi.Manifest
	CanCall  func(abi.Op) bool
}

// ofManifest grants everything that the manifest of a module requests.
var ofManifest = Grant{File: grant.File{{Manifest: true}}}

// LeastRights returns the rights that a controller needs: those that its module asks for,
// within the grant's file if there is one.
func LeastRights(ctx context.Context, o Options, controller string, kinds Finder, module Asking) (*Least, error) {
	if o.Grant.Path == "" {
		o.Grant = ofManifest
	}
	o.Signed.Signers = func(string) []string { return module.Signers }
	p, err := (&Planner{Options: o, Controller: controller, Finder: kinds, Log: slog.New(slog.DiscardHandler)}).Of(module.Digest)
	if err != nil {
		return nil, err
	}
	m := cmp.Or(module.Manifest, &abi.Manifest{})
	g, err := p.granted(ctx)
	if err != nil {
		return nil, err
	}
	kind, err := p.Kind(ctx, m)
	if err != nil {
		return nil, err
	}
	watched, err := p.plan(ctx, kinds, kind, m)
	if err != nil {
		return nil, err
	}
	if !g.all {
		if err := g.bound(kind, watched); err != nil {
			return nil, p.hint(err)
		}
	}
	out, needs := &Least{Namespaces: kind.Watch.Namespaces}, watched.needs(kind)
	out.Grant = needs.Rules()
	for _, right := range needs.Webhooks {
		if grant.IsConversion(&right) && (g.all || grant.Admits(g.rules, &right, "")) {
			out.Converts = append(out.Converts, right.Resource+"."+right.Group)
		}
	}
	if f := m.Finalizer; f != "" && !needs.OwnFinalizer(f) {
		out.Finalizers = []string{f}
	}
	if !g.all {
		needs.Capabilities = m.Capabilities
	}
	out.Rules = needs.AccessRules(module.CanCall)
	if !g.all {
		out.Rules, needs.Capabilities = kubeapi.Intersect(out.Rules, g.rules), kubeapi.Intersect(m.Capabilities, g.rules)
		needs.For.Namespaces, _ = needs.For.Narrow(g.rules) // bound has checked that there are some
	}
	out.Rules = append(out.Rules, needs.OwnerRules()...) // a grant does not name them
	return out, nil
}

// EventNamespace returns the namespace for events about a controller as a whole if it runs
// outside of a cluster.
func EventNamespace(watched []string) string {
	if len(watched) > 0 {
		return watched[0]
	}
	return corev1.NamespaceDefault
}
