// SPDX-License-Identifier: Apache-2.0

// Package plan applies the options of a controller and the grant of an operator to a
// module's manifest. It decides which kinds are watched and in which namespaces, what the
// module may do, and the least rights that this requires.
package plan

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// Options set what a controller reconciles and what its module may do.
type Options struct {
	v1alpha1.ControllerSpec

	// Grant is the grant of the spec, or the content of an operator's file.
	Grant Grant
	// Confine, if not empty, is the only namespace that the module may access.
	Confine string
	Signed  Signed
}

// Grant is the set of rights that an operator gives to a module. The zero Grant allows only
// what the options name: to watch the kinds of For and Owns, and to write the status of the
// first.
type Grant struct {
	// Everything allows everything that the API server allows, for an audit.
	Everything bool
	// File has the rules for this and other controllers. Path is its name; empty if there
	// is no file.
	File grant.File
	Path string
}

// GrantOf returns the grant of a spec; file is the content of its GrantFile, or nil. In
// audit mode, the grant allows everything that the API server allows.
func GrantOf(s *v1alpha1.ControllerSpec, file grant.File) (Grant, error) {
	switch {
	case file != nil:
		return Grant{File: file, Path: cmp.Or(s.GrantFile, "grant")}, nil
	case s.Mode == v1alpha1.ModeAudit:
		return Grant{Everything: true}, nil
	case s.Grant.IsZero():
		return Grant{}, nil
	}
	of := s.Grant
	d := grant.Document{Digests: of.Digests, Signers: of.Signers, Manifest: of.Manifest, Capabilities: of.Capabilities, Finalizers: of.Finalizers}
	content, err := d.Marshal() // parsed like a file, with the same checks
	if err != nil {
		return Grant{}, err
	}
	return ParseGrant("grant", content)
}

// ParseGrant parses the content of a grant file.
func ParseGrant(path string, content []byte) (Grant, error) {
	f, err := grant.Parse(path, content)
	if err != nil {
		return Grant{}, failure.Usage.Wrap(fmt.Errorf("grant: %w", err))
	}
	return Grant{File: f, Path: path}, nil
}

// Rules returns the rules of the file for a controller. It returns an error if the file is
// only for other controllers.
func (g *Grant) Rules(controller string) ([]abi.Capability, error) {
	rules, named := g.File.Rules(controller)
	if named || g.Path == "" {
		return rules, nil
	}
	return nil, failure.Usage.Wrap(fmt.Errorf("grant %s: no document for controller %s, only for %s; give the controller that name, or remove controller from a document",
		g.Path, controller, strings.Join(g.File.Controllers(), ", ")))
}

// Check returns an error if the file is only for other controllers, or only for other
// modules than the one with this digest and these signers.
func (g *Grant) Check(controller, digest string, signers []string) error {
	_, _, err := g.of(controller, digest, signers)
	return err
}

// of returns the grant without documents for other controllers or other modules than the
// one with this digest and these signers. elsewhere describes the modules that they are
// bound to, if no document is bound to this module.
func (g *Grant) of(controller, digest string, signers []string) (of Grant, elsewhere string, err error) {
	if _, err := g.Rules(controller); err != nil {
		return *g, "", err
	}
	of = *g
	var others grant.Bound
	of.File, others = g.File.Of(controller).For(digest, signers)
	if elsewhere = boundTo(others, digest, signers); elsewhere == "" {
		return of, "", nil
	}
	elsewhere = "grant " + cmp.Or(g.Path, "grant") + ": " + elsewhere
	if len(of.File) == 0 {
		err = notGranted("nothing is granted to the module: " + elsewhere)
	}
	return of, elsewhere, err
}

// Planner makes the plans of one controller.
type Planner struct {
	Options

	Controller string
	Finder     Finder
	Log        *slog.Logger // receives warnings about watches that are narrowed or skipped

	elsewhere string // describes other modules that the grant is bound to; see Of
}

// Of returns the Planner of the module with a digest: documents of the grant file that are
// bound to other modules do not apply to it. It returns an error if all documents are bound
// to others, or if the module lacks a required signature.
func (p *Planner) Of(digest string) (*Planner, error) {
	next := *p
	signers, err := p.Signed.check(digest)
	if err != nil {
		return &next, err
	}
	if next.Grant, next.elsewhere, err = p.Grant.of(p.Controller, digest, signers); err == nil && next.elsewhere != "" {
		p.Log.Warn("a part of the grant is not for this module", "reason", next.elsewhere)
	}
	return &next, err
}

// hint adds to an error about a missing right the modules that have that right.
func (p *Planner) hint(err error) error {
	if p.elsewhere == "" || failure.Of(err) != failure.Denied {
		return err
	}
	return fmt.Errorf("%w\n%s", err, p.elsewhere)
}

// Kind finds the kind to reconcile, and narrows its watch to the namespaces that the grant
// file allows. If nothing is granted at all, it returns that error before it waits for the
// kind.
func (p *Planner) Kind(ctx context.Context, m *abi.Manifest) (Watched, error) {
	if g := &p.Grant; !g.Everything && g.File == nil && p.For == nil && len(p.Owns) == 0 {
		if err := p.foresee(ctx, m); failure.Of(err) == failure.Denied {
			return Watched{}, err
		}
	}
	k, err := p.reconciled(ctx, p.Finder, m)
	if err != nil || p.Grant.Path == "" && p.Confine == "" {
		return k, err // Plan checks all watches together
	}
	narrowed, err := p.Narrow(ctx, k)
	if err != nil {
		if _, all := p.Plan(ctx, k, m); all != nil {
			err = all // reports the other missing rights too
		}
		return k, err
	}
	return narrowed, nil
}

// foresee plans without waiting for kinds that do not exist yet.
func (p *Planner) foresee(ctx context.Context, m *abi.Manifest) error {
	next, guess := *p, &Guess{}
	if f, ok := p.Finder.(*Patient); ok {
		guess.Resolver = f.Resolver
	}
	next.Finder = guess
	k, err := next.reconciled(ctx, guess, m)
	if err == nil {
		_, err = next.Plan(ctx, k, m)
	}
	return err
}

// Narrow limits a watch to the namespaces in which the operator allows the module to see
// its objects.
func (p *Planner) Narrow(ctx context.Context, k Watched) (Watched, error) {
	g, err := p.granted(ctx)
	if err != nil {
		return k, err
	}
	k, err = g.narrow(k)
	return k, p.hint(err)
}

// Plan finds the kinds that a manifest owns and watches in addition to the reconciled one,
// and decides the rights of the module.
func (p *Planner) Plan(ctx context.Context, kind Watched, m *abi.Manifest) (*Plan, error) {
	next, err := p.plan(ctx, p.Finder, kind, m)
	if err != nil {
		return nil, err
	}
	return next, p.hint(p.grant(ctx, kind, next))
}

// Limit returns the rights that the Planner's module may have if it replaces the module of
// the plan first: its own grant, and the needs of that plan.
func (p *Planner) Limit(ctx context.Context, kind Watched, first *Plan) (*Limit, error) {
	g, err := p.granted(ctx)
	if err != nil {
		return nil, err
	}
	l := &Limit{Rules: append(slices.Clip(g.rules), first.Rights...), elsewhere: p.elsewhere}
	for _, k := range first.Pending {
		k.Namespaced = true // not known yet; the rule of a cluster-scoped kind omits the namespaces
		l.Pending = append(l.Pending, p.Placed(kind, k))
	}
	return l, nil
}
