// Package plan says what a module's manifest means under the options of its
// controller and under the grant of an operator: which kinds are watched and
// where, what the module may do, and the least rights that this takes.
package plan

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// Options say what a controller reconciles and what its module may do: fields of
// wasmctl.ControllerOptions.
type Options struct {
	For                     string
	Owns                    []string
	Namespaces              []string
	AllNamespaces           bool
	Selector, FieldSelector string
	Predicates              []string
	Grant                   Grant
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

// ParseGrant reads the content of a grant's file.
func ParseGrant(path string, content []byte) (Grant, error) {
	f, err := grant.Parse(path, content)
	if err != nil {
		return Grant{}, failure.Usage.Wrap(fmt.Errorf("--grant: %w", err))
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
	return nil, failure.Usage.Wrap(fmt.Errorf("--grant %s: no document for controller %s, only for %s; set the name with --name, or remove controller from a document",
		g.Path, controller, strings.Join(g.File.Controllers(), ", ")))
}

// Planner makes the plans of one controller.
type Planner struct {
	Options

	Controller string
	Finder     Finder
	Log        *slog.Logger // told of what is watched in part, or not at all
}

// Kind finds the kind to reconcile, and narrows its watch to where a grant's file
// lets it be watched.
func (p *Planner) Kind(ctx context.Context, m *abi.Manifest) (Watched, error) {
	k, err := p.reconciled(ctx, p.Finder, m)
	if err != nil || p.Grant.Path == "" {
		return k, err // Plan decides on all at once
	}
	return p.Narrow(ctx, k)
}

// Narrow keeps a watch to the namespaces in which the operator lets the module
// see its objects.
func (p *Planner) Narrow(ctx context.Context, k Watched) (Watched, error) {
	g, err := p.granted(ctx)
	if err != nil {
		return k, err
	}
	return g.narrow(k)
}

// Plan finds the kinds that a manifest owns and watches beside the one that is
// reconciled, and decides what the module may do.
func (p *Planner) Plan(ctx context.Context, kind Watched, m *abi.Manifest) (*Plan, error) {
	next, err := p.plan(ctx, p.Finder, kind, m)
	if err != nil {
		return nil, err
	}
	return next, p.grant(ctx, kind, next)
}

// Limit returns the rights that no module may have more than that replaces the
// one of this plan: what is granted, and what the plan needs.
func (p *Planner) Limit(ctx context.Context, kind Watched, first *Plan) (*Limit, error) {
	g, err := p.granted(ctx)
	if err != nil {
		return nil, err
	}
	l := &Limit{Rules: append(slices.Clip(g.rules), first.Rights...)}
	for _, k := range first.Pending {
		k.Namespaced = true // not known yet; the rule of a cluster-scoped kind omits them
		l.Pending = append(l.Pending, p.Placed(kind, k))
	}
	return l, nil
}
