package plan

import (
	"cmp"
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// Least has the minimal rights that a controller needs, without events and a
// Lease.
type Least struct {
	Rules []abi.Capability
	// Grant is what a grant must allow so that nothing of the module is refused, and
	// Finalizers those that it must name.
	Grant      []abi.Capability
	Finalizers []string
	// Namespaces are those in which the kind is watched that is reconciled; none for
	// all.
	Namespaces []string
}

// Asking is a module that asks for rights. CanCall says which operations it
// imports; a Manifest of nil is an empty one. Signers are those of its keys.
type Asking struct {
	Digest   string
	Signers  []string
	Manifest *abi.Manifest
	CanCall  func(abi.Op) bool
}

// LeastRights says what a controller takes: what its module asks for, within its
// grant's file if there is one.
func LeastRights(ctx context.Context, o Options, controller string, kinds Finder, module Asking) (*Least, error) {
	if o.Grant.Path == "" {
		o.Grant = Grant{Manifest: true}
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
	if f := m.Finalizer; f != "" && !needs.OwnFinalizer(f) {
		out.Finalizers = []string{f}
	}
	if g.all {
		out.Rules = needs.AccessRules(module.CanCall)
		return out, nil
	}
	needs.Capabilities = m.Capabilities
	out.Rules = kubeapi.Intersect(needs.AccessRules(module.CanCall), g.rules)
	return out, nil
}

// EventNamespace is where events about a controller as a whole are recorded
// outside of a cluster.
func EventNamespace(watched []string) string {
	if len(watched) > 0 {
		return watched[0]
	}
	return corev1.NamespaceDefault
}
