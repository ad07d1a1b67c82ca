// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
)

// granted is the set of rights that an operator gives to a module.
type granted struct {
	rules      []abi.Capability
	finalizers []string // in addition to the module's own
	all        bool     // everything that the manifest requests
	log        *slog.Logger

	confined func([]abi.Capability) []abi.Capability // limits rules to the namespace of Confine
}

func (p *Planner) granted(ctx context.Context) (*granted, error) {
	g := &granted{log: p.Log, confined: func(rules []abi.Capability) []abi.Capability { return p.confined(ctx, rules) }}
	if g.all = p.Grant.Everything || p.Grant.File.Manifest(p.Controller); g.all {
		return g, nil
	}
	rules, err := p.Grant.Rules(p.Controller)
	if err != nil {
		return nil, err
	}
	named, err := p.named(ctx)
	g.rules, g.finalizers = g.confined(append(rules, named...)), p.Grant.File.Finalizers(p.Controller)
	return g, err
}

// confined returns the part of the rules that applies in the namespace of Confine.
func (p *Planner) confined(ctx context.Context, rules []abi.Capability) (left []abi.Capability) {
	if p.Confine == "" {
		return rules
	}
	for _, c := range rules {
		if (len(c.Namespaces) == 0 || slices.Contains(c.Namespaces, p.Confine)) && p.Finder.Namespaced(ctx, c.Group, c.Resource) {
			c.Namespaces = []string{p.Confine}
			left = append(left, c)
		}
	}
	return left
}

// named returns the rights to the kinds that the options name.
func (p *Planner) named(ctx context.Context) (rules []abi.Capability, err error) {
	if p.For != nil {
		k, err := p.Finder.Named(ctx, "for", p.For.String())
		if err != nil {
			return nil, err
		}
		rules = append(rules, grant.OwnRights(grant.Watch{Kind: k, Namespaces: p.Namespaces})...)
	}
	for _, name := range v1alpha1.Kinds(p.Owns) {
		k, err := p.Finder.Named(ctx, "owns", name)
		if err != nil {
			return nil, err
		}
		w := grant.Watch{Kind: k, Namespaces: p.Namespaces}
		rules = append(rules, w.Rule())
	}
	return rules, nil
}

// narrow limits a watch to the namespaces in which its objects may be seen.
func (g *granted) narrow(k Watched) (Watched, error) {
	w, rules := k.needs(), g.rules
	if g.all {
		rules = g.confined([]abi.Capability{w.Rule()})
	}
	namespaces, ok := w.Narrow(rules)
	if !ok {
		return k, ungranted([]abi.Capability{w.Rule()}, "", nil)
	}
	if !slices.Equal(namespaces, k.Watch.Namespaces) {
		g.log.Warn("watching only the granted namespaces", "kind", k.Name(), "namespaces", strings.Join(namespaces, ","))
		k.Watch.Namespaces = namespaces
	}
	return k, nil
}

// needs returns the watch as package grant sees it.
func (k *Watched) needs() grant.Watch {
	w := grant.Watch{Kind: k.Kind, Namespaces: k.Watch.Namespaces, Seen: k.Watch.Map == abi.MapFunc}
	if filter, err := predicate.Parse(k.Watch.Predicates, predicate.Options{}); err == nil && filter.Asks() {
		w.Seen = true
	}
	if selector, err := fields.ParseSelector(k.Watch.FieldSelector); err == nil {
		w.Name, _ = selector.RequiresExactMatch("metadata.name")
	}
	return w
}

// needs returns the rights that running the module requires.
func (p *Plan) needs(kind Watched) *grant.Needs {
	n := &grant.Needs{For: kind.needs(), Finalizer: p.Manifest.Finalizer != "", Capabilities: p.asks, Webhooks: p.webhookRights()}
	for i := range p.Related {
		n.Watches = append(n.Watches, p.Related[i].needs())
	}
	return n
}

// grant decides the rights of the module of a plan, and removes optional watches that are
// not granted.
func (p *Planner) grant(ctx context.Context, kind Watched, next *Plan) error {
	if err := grant.CheckAsked(next.Manifest.Capabilities); err != nil {
		return failure.Module.Wrap(fmt.Errorf("manifest: %w", err))
	}
	g, err := p.granted(ctx)
	if err != nil {
		return err
	}
	next.Policy = kubeapi.NewModulePolicy(kind.Kind, kind.Watch.Namespaces, next.Manifest.Capabilities)
	needs := next.needs(kind)
	next.Rights = needs.Rules()
	if p.Confine != "" && g.all {
		g = &granted{rules: g.confined(next.Rights), finalizers: []string{next.Manifest.Finalizer}, log: g.log}
		return p.within(ctx, g, kind, next)
	}
	switch more := grant.Beyond(g.rules, next.Rights); {
	case p.Grant.Everything:
		next.Policy = kubeapi.Everything()
		return nil
	case g.all:
		p.admit(ctx, next, needs.Webhooks)
		if len(p.Namespaces) > 0 {
			next.Policy = next.Policy.Narrowed(append(grant.OwnRights(needs.For), next.asks...))
		}
		next.Granted = next.asks
		return nil
	case p.Grant.Path == "" && len(more) > 0:
		return ungranted(more, "", nil)
	}
	return p.within(ctx, g, kind, next)
}

// within limits a plan to the granted rights.
func (p *Planner) within(ctx context.Context, g *granted, kind Watched, next *Plan) error {
	next.Refused = grant.Beyond(g.rules, append(slices.Clip(next.asks), next.webhookRights()...))
	p.admit(ctx, next, g.rules)
	if err := g.bound(kind, next); err != nil {
		return err
	}
	next.Policy, next.Granted = next.Policy.Within(g.rules), kubeapi.Intersect(next.Manifest.Capabilities, g.rules)
	return nil
}

// bound limits the watches of a plan to the granted namespaces. The error lists the missing
// rights that the module cannot run without, and those that it requests in addition.
func (g *granted) bound(kind Watched, p *Plan) error {
	var kept []Watched
	var lacks []abi.Capability // all together, so that the user need not find them one by one
	if _, err := g.narrow(kind); err != nil {
		w := kind.needs()
		lacks = append(lacks, w.Rule())
	}
	for _, k := range p.Related {
		narrowed, err := g.narrow(k)
		switch {
		case err == nil:
			kept = append(kept, narrowed)
		case k.Watch.Optional:
			g.log.Warn("skipping optional watch", "kind", k.Name(), "error", humanize.OneLine(err.Error()))
		default:
			w := k.needs()
			lacks = append(lacks, w.Rule())
		}
	}
	needs := grant.Needs{For: kind.needs(), Finalizer: p.Manifest.Finalizer != ""}
	lacks = append(lacks, grant.Beyond(g.rules, needs.FinalizerRules())...)
	finalizer := ""
	if f := p.Manifest.Finalizer; f != "" && !needs.OwnFinalizer(f) && !slices.Contains(g.finalizers, f) {
		finalizer = fmt.Sprintf("the finalizer %s: its domain is not the API group of %s, so it may be another controller's; "+
			"if it is the module's, add finalizers: [%s] to the grant", f, kind.Name(), f)
	}
	if len(lacks) > 0 || finalizer != "" {
		return ungranted(lacks, finalizer, grant.Beyond(g.rules, append(grant.OwnRights(needs.For)[1:], p.Refused...))) // the first is a watch's
	}
	p.Related = kept
	return nil
}

// Limit bounds the rights of a module that replaces another one.
type Limit struct {
	// Rules are the granted rights, and those that the first module needs.
	Rules []abi.Capability
	// Pending are the watches of the first module whose kinds did not exist; their rules
	// are known only when the kinds exist.
	Pending []Watched

	elsewhere string // as in Planner
}

// rules returns the rules of the limit, with those of pending watches of this kind.
func (l *Limit) rules(k Watched) []abi.Capability {
	rules := slices.Clip(l.Rules)
	for _, p := range l.Pending {
		if p.Watch.Group == k.Group && p.Watch.Kind == k.Kind.Kind {
			p.Kind = k.Kind
			w := p.needs()
			rules = append(rules, w.Rule())
		}
	}
	return rules
}

// beyond returns the rights beyond the limit that watching a kind requires: a watch needs
// the rights to list and watch, and also to get if the module is shown the objects.
func (l *Limit) beyond(k Watched) []abi.Capability {
	w := k.needs()
	return grant.Beyond(l.rules(k), []abi.Capability{w.Rule()})
}

// AllowsWatch returns an error that lists the rights beyond the limit that watching a kind
// requires.
func (l *Limit) AllowsWatch(k Watched) error { return l.moreRights(l.beyond(k)) }

// WithinLimit returns an error that lists the rights beyond the limit that a plan requests.
func (p *Plan) WithinLimit(limit *Limit) error {
	more := grant.Beyond(limit.Rules, append(slices.Clip(p.asks), p.webhookRights()...))
	for _, k := range p.Related {
		more = append(more, limit.beyond(k)...)
	}
	return limit.moreRights(more)
}

func (l *Limit) moreRights(more []abi.Capability) error {
	if len(more) == 0 {
		return nil
	}
	texts := make([]string, len(more))
	for i := range more {
		texts[i] = RuleText(&more[i])
	}
	text := "the module requests rights that were not granted and that the first module did not have; extend the grant, or set rollout.allowMoreRights (--allow-more-rights) to allow them: " +
		strings.Join(texts, "; ")
	if l.elsewhere != "" {
		text += "; " + l.elsewhere
	}
	return errors.New(text)
}

// RuleLines formats rules as in a manifest or a grant.
func RuleLines(rules []abi.Capability) string {
	lines := make([]string, len(rules))
	for i := range rules {
		lines[i] = "  - " + RuleText(&rules[i])
	}
	return strings.Join(lines, "\n")
}

// RuleText formats a rule as JSON, which is also YAML.
func RuleText(c *abi.Capability) string {
	b, err := json.Marshal(c)
	if err != nil {
		panic("BUG: capability: " + err.Error()) // it has only strings
	}
	return string(b)
}
