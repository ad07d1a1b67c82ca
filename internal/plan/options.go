// Package plan says what a module's manifest means under the options of its
// controller and under the grant of an operator: which kinds are watched and
// where, what the module may do, and the least rights that this takes.
package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// Options say what a controller reconciles and what its module may do.
type Options struct {
	v1alpha1.ControllerSpec

	// Grant is the grant of the spec, or of the file of an operator.
	Grant Grant
	// Confine, if not empty, is the only namespace that the module reaches.
	Confine string
	Signed  Signed
}

// Grant is what an operator lets a module do. The zero Grant is what options
// name: to watch the kinds of For and Owns and to write the status of the first.
type Grant struct {
	// Manifest accepts all that the module's manifest asks for.
	Manifest bool
	// Everything allows whatever the API server allows: for an audit.
	Everything bool
	// File are the rules for this controller and for others. Path is its name; empty
	// where there is no file.
	File grant.File
	Path string
}

// IsZero reports whether the grant allows only what options name.
func (g *Grant) IsZero() bool { return !g.Manifest && !g.Everything && g.Path == "" && g.File == nil }

// GrantOf returns the grant of a spec. With everything, it allows whatever the API server
// allows.
func GrantOf(s *v1alpha1.CommonSpec, everything bool) (Grant, error) {
	switch {
	case everything:
		return Grant{Everything: true}, nil
	case s.Grant.IsZero():
		return Grant{}, nil
	case s.Grant.Manifest:
		return Grant{Manifest: true}, nil
	}
	content, err := json.Marshal(struct { // read as a file is: with its checks
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		v1alpha1.Grant
	}{grant.APIVersion, grant.Kind, *s.Grant})
	if err != nil {
		return Grant{}, err
	}
	return ParseGrant("grant", content)
}

// ParseGrant reads the content of a grant's file.
func ParseGrant(path string, content []byte) (Grant, error) {
	f, err := grant.Parse(path, content)
	if err != nil {
		return Grant{}, failure.Usage.Wrap(fmt.Errorf("grant: %w", err))
	}
	return Grant{File: f, Path: path}, nil
}

// Rules returns the rules of the file for a controller. The error says that the
// file is about others only.
func (g *Grant) Rules(controller string) ([]abi.Capability, error) {
	rules, named := g.File.Rules(controller)
	if named || g.Path == "" {
		return rules, nil
	}
	return nil, failure.Usage.Wrap(fmt.Errorf("grant %s: no document for controller %s, only for %s; give the controller that name, or remove controller from a document",
		g.Path, controller, strings.Join(g.File.Controllers(), ", ")))
}

// Check returns an error where the file is for other controllers or for other
// modules only than the one with a digest and these signers.
func (g *Grant) Check(controller, digest string, signers []string) error {
	_, _, err := g.of(controller, digest, signers)
	return err
}

// of returns the grant without documents that are not for a controller whose
// module has a digest and signers. Elsewhere says to which others they are bound,
// where none is bound to this one.
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
	elsewhere = "grant " + g.Path + ": " + elsewhere
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
	Log        *slog.Logger // told of what is watched in part, or not at all

	elsewhere string // which other modules the grant is bound to; see Of
}

// Of returns the Planner of the module with a digest: documents of the grant's
// file that are bound to others give it nothing. The error says that all are, or
// that the module is not signed as it must be.
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

// hint adds to an error about a missing right which modules may have it.
func (p *Planner) hint(err error) error {
	if p.elsewhere == "" || failure.Of(err) != failure.Denied {
		return err
	}
	return fmt.Errorf("%w\n%s", err, p.elsewhere)
}

// Kind finds the kind to reconcile, and narrows its watch to where a grant's file
// lets it be watched. Where nothing at all is granted, the error says so before the
// kind is waited for.
func (p *Planner) Kind(ctx context.Context, m *abi.Manifest) (Watched, error) {
	if g := &p.Grant; !g.Manifest && !g.Everything && g.Path == "" && p.For == nil && len(p.Owns) == 0 {
		if err := p.foresee(ctx, m); failure.Of(err) == failure.Denied {
			return Watched{}, err
		}
	}
	k, err := p.reconciled(ctx, p.Finder, m)
	if err != nil || p.Grant.Path == "" && p.Confine == "" {
		return k, err // Plan decides on all at once
	}
	narrowed, err := p.Narrow(ctx, k)
	if err != nil {
		if _, all := p.Plan(ctx, k, m); all != nil {
			err = all // what else lacks, too
		}
		return k, err
	}
	return narrowed, nil
}

// foresee plans without waiting for the kinds that are not there yet.
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

// Narrow keeps a watch to the namespaces in which the operator lets the module
// see its objects.
func (p *Planner) Narrow(ctx context.Context, k Watched) (Watched, error) {
	g, err := p.granted(ctx)
	if err != nil {
		return k, err
	}
	k, err = g.narrow(k)
	return k, p.hint(err)
}

// Plan finds the kinds that a manifest owns and watches beside the one that is
// reconciled, and decides what the module may do.
func (p *Planner) Plan(ctx context.Context, kind Watched, m *abi.Manifest) (*Plan, error) {
	next, err := p.plan(ctx, p.Finder, kind, m)
	if err != nil {
		return nil, err
	}
	return next, p.hint(p.grant(ctx, kind, next))
}

// Limit returns the rights that the Planner's module may not have more than if it
// replaces the one of this plan: what is granted to it, and what the plan needs.
func (p *Planner) Limit(ctx context.Context, kind Watched, first *Plan) (*Limit, error) {
	g, err := p.granted(ctx)
	if err != nil {
		return nil, err
	}
	l := &Limit{Rules: append(slices.Clip(g.rules), first.Rights...), elsewhere: p.elsewhere}
	for _, k := range first.Pending {
		k.Namespaced = true // not known yet; the rule of a cluster-scoped kind omits them
		l.Pending = append(l.Pending, p.Placed(kind, k))
	}
	return l, nil
}
