package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
)

// serviceAccountUser is what the user name of a service account begins with.
const serviceAccountUser = "system:serviceaccount:"

// rightsOptions are the flags that say what a module may do.
type rightsOptions struct {
	grantFile     string
	grantManifest bool
	as            string
	dryRun        string
	audit         string
}

func (o *rightsOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.grantFile, "grant", "", "YAML file of what the module may do, whatever its manifest asks for (docs/capabilities.md)")
	f.BoolVar(&o.grantManifest, "grant-manifest", false, "let the module do all that its manifest asks for (default with --dev)")
	f.StringVar(&o.as, "as", "", "send the requests of the module, and its watches, as this user: "+serviceAccountUser+"NAMESPACE:NAME")
	f.StringVar(&o.audit, "audit", "", "let the module do whatever the API server allows, and write the least grant that allows what it did into this file")
	f.StringVar(&o.dryRun, "dry-run", "", "change nothing, and print what each write would change: server asks the API server, client sends no write")
	f.Lookup("dry-run").NoOptDefVal = string(kubeapi.DryRunServer)
	_ = cmd.MarkFlagFilename("grant", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(dryRunModes, cobra.ShellCompDirectiveNoFileComp))
}

func (o *rightsOptions) validate() error {
	var errs []error
	if o.audit != "" && (o.grantFile != "" || o.grantManifest) {
		errs = append(errs, errors.New("--audit lets the module do everything: leave --grant and --grant-manifest out"))
	}
	if o.grantFile != "" && o.grantManifest {
		errs = append(errs, errors.New("--grant and --grant-manifest exclude each other"))
	}
	if account, ok := strings.CutPrefix(o.as, "system:serviceaccount"); ok {
		if parts := strings.Split(account, ":"); len(parts) != 3 || parts[1] == "" || parts[2] == "" {
			errs = append(errs, fmt.Errorf("--as %q: want %sNAMESPACE:NAME", o.as, serviceAccountUser))
		}
	}
	if o.dryRun != "" && !slices.Contains(dryRunModes, o.dryRun) {
		errs = append(errs, fmt.Errorf("--dry-run %q: want %s", o.dryRun, strings.Join(dryRunModes, " or ")))
	}
	return errors.Join(errs...)
}

// readGrant reads the grant's file.
func (o *rightsOptions) readGrant() (grant.File, []byte, error) {
	if o.grantFile == "" {
		return nil, nil, nil
	}
	content, err := os.ReadFile(o.grantFile)
	if err != nil {
		return nil, nil, withCode(exitUsage, fmt.Errorf("--grant %s: %w", o.grantFile, withoutPath(err)))
	}
	f, err := grant.Parse(o.grantFile, content)
	if err != nil {
		return nil, nil, withCode(exitUsage, fmt.Errorf("--grant: %w", err))
	}
	return f, content, nil
}

// names reports whether a grant's file is about a controller.
func (o *rightsOptions) names(f grant.File, controller string) error {
	if _, named := f.Rules(controller); named || o.grantFile == "" {
		return nil
	}
	return withCode(exitUsage, fmt.Errorf("--grant %s: no document is for the controller %s: there are %s; name it with --name, or leave controller out of a document",
		o.grantFile, controller, strings.Join(f.Controllers(), ", ")))
}

// granted is what an operator lets a module do.
type granted struct {
	rules []abi.Capability
	// all says that it may do whatever its manifest asks for.
	all bool
	log *slog.Logger // told of what is watched in part, or not at all
}

// granted returns what the operator lets the module do now.
func (s *session) granted(ctx context.Context) (*granted, error) {
	r := &s.opts.rights
	if r.grantManifest || r.audit != "" || s.process.opts.dev && r.grantFile == "" {
		return &granted{all: true}, nil
	}
	rules, err := s.opts.granted(ctx, s.kinds(), s.grantFile, s.name)
	return &granted{rules: rules, log: s.log.With("controller", s.name)}, err
}

// granted are the rules of a grant's file for a controller, and what flags name.
func (o *controllerOptions) granted(ctx context.Context, kinds finder, f grant.File, controller string) ([]abi.Capability, error) {
	if err := o.rights.names(f, controller); err != nil {
		return nil, err
	}
	rules, _ := f.Rules(controller)
	if o.forKind != "" {
		k, err := kinds.named(ctx, "--for", o.forKind)
		if err != nil {
			return nil, err
		}
		rules = append(rules, grant.OwnRights(grant.Watch{Kind: k, Namespaces: o.namespaces})...)
	}
	for _, name := range o.owns {
		k, err := kinds.named(ctx, "--owns", name)
		if err != nil {
			return nil, err
		}
		w := grant.Watch{Kind: k, Namespaces: o.namespaces}
		rules = append(rules, w.Rule())
	}
	return rules, nil
}

// narrow keeps a watch to the namespaces in which the operator lets the module
// see its objects.
func (g *granted) narrow(k watched) (watched, error) {
	if g.all {
		return k, nil
	}
	w := k.needs()
	namespaces, ok := w.Narrow(g.rules)
	if !ok {
		return k, withCode(exitDenied, fmt.Errorf("watch of %s: nobody has granted it to the module; %s\n%s", k.Name(), howToGrant, ruleLines([]abi.Capability{w.Rule()})))
	}
	if !slices.Equal(namespaces, k.watch.Namespaces) {
		g.log.Warn("watched only where it is granted", "kind", k.Name(), "namespaces", strings.Join(namespaces, ","))
		k.watch.Namespaces = namespaces
	}
	return k, nil
}

// needs is what a grant is asked about a watch.
func (k *watched) needs() grant.Watch {
	w := grant.Watch{Kind: k.Kind, Namespaces: k.watch.Namespaces, Optional: k.watch.Optional, Seen: k.watch.Map == abi.MapFunc}
	if filter, err := predicate.Parse(k.watch.Predicates, predicate.Options{}); err == nil && filter.Asks() {
		w.Seen = true
	}
	if selector, err := fields.ParseSelector(k.watch.FieldSelector); err == nil {
		w.Name, _ = selector.RequiresExactMatch("metadata.name")
	}
	return w
}

// needsOf says what running a module takes.
func needsOf(kind watched, p *plan) *grant.Needs {
	n := &grant.Needs{For: kind.needs(), Finalizer: p.manifest.Finalizer != "", Capabilities: p.asks}
	for i := range p.related {
		n.Watches = append(n.Watches, p.related[i].needs())
	}
	return n
}

// grantTo decides what the module of a plan may do, and drops the optional
// watches that it may not have.
func (s *session) grantTo(ctx context.Context, p *plan) error {
	if err := kubeapi.CheckRules(p.manifest.Capabilities); err != nil {
		return withCode(exitModule, fmt.Errorf("manifest: %w", err))
	}
	g, err := s.granted(ctx)
	if err != nil {
		return err
	}
	p.policy = kubeapi.NewModulePolicy(s.kind.Kind, s.kind.watch.Namespaces, p.manifest.Capabilities)
	needs := needsOf(s.kind, p)
	p.rights = needs.Rules()
	switch more := grant.Beyond(g.rules, p.rights); {
	case s.opts.rights.audit != "":
		p.policy = kubeapi.Everything()
		return nil
	case g.all:
		if len(s.opts.namespaces) > 0 {
			p.policy = p.policy.Within(append(grant.OwnRights(needs.For), p.asks...))
		}
		p.may = p.asks
		return nil
	case s.opts.rights.grantFile == "" && len(more) > 0:
		return withCode(exitDenied, fmt.Errorf("the module asks for rights that nobody has granted it; %s\n%s", howToGrant, ruleLines(more)))
	}
	if err := g.bound(s.kind, p); err != nil {
		return err
	}
	p.policy, p.may = p.policy.Within(g.rules), kubeapi.Intersect(p.manifest.Capabilities, g.rules)
	p.beyond = grant.Beyond(g.rules, p.asks)
	return nil
}

// bound keeps the watches of a plan to where they are granted. The error says
// what the module cannot run without.
func (g *granted) bound(kind watched, p *plan) error {
	if err := g.narrowAll(p); err != nil {
		return err
	}
	needs := grant.Needs{For: kind.needs(), Finalizer: p.manifest.Finalizer != ""}
	if missing := grant.Beyond(g.rules, needs.FinalizerRules()); len(missing) > 0 {
		return withCode(exitDenied, fmt.Errorf("the module's finalizer is not granted; %s\n%s", howToGrant, ruleLines(missing)))
	}
	return nil
}

// narrowAll narrows the related watches of a plan.
func (g *granted) narrowAll(p *plan) error {
	var kept []watched
	for _, k := range p.related {
		narrowed, err := g.narrow(k)
		switch {
		case err == nil:
			kept = append(kept, narrowed)
		case k.watch.Optional:
			g.log.Warn("optional watch is left out", "kind", k.Name(), "error", err.Error())
		default:
			return err
		}
	}
	p.related = kept
	return nil
}

// missingRights returns what the module was denied, for wasmctl status.
func (s *session) missingRights() []admin.MissingRight {
	var list []admin.MissingRight
	for _, d := range s.api.Denied() {
		for _, part := range []*[]string{&d.Rule.Namespaces, &d.Rule.Names, &d.Rule.Fields} { // what the module has chosen
			*part = hideEach(*part, s.secrets.Text)
		}
		list = append(list, admin.MissingRight{
			Rule: json.RawMessage(ruleText(&d.Rule)), Missing: d.Where, Count: d.Count, Last: s.secrets.Text(d.Last.String()), LastTime: d.LastTime,
		})
	}
	return list
}

// hideEach returns the texts as hide makes them.
func hideEach(texts []string, hide func(string) string) []string {
	out := slices.Clone(texts)
	for i := range out {
		out[i] = hide(out[i])
	}
	return out
}

const howToGrant = "accept all that its manifest asks for with --grant-manifest, or write what it may do into a file for --grant (docs/capabilities.md). Missing:"

// ruleLines writes rules as they stand in a manifest or a grant.
func ruleLines(rules []abi.Capability) string {
	lines := make([]string, len(rules))
	for i := range rules {
		lines[i] = "  - " + ruleText(&rules[i])
	}
	return strings.Join(lines, "\n")
}

// ruleText is a rule as JSON, which is YAML too.
func ruleText(c *abi.Capability) string {
	b, err := json.Marshal(c)
	if err != nil {
		panic("BUG: capability: " + err.Error()) // strings
	}
	return string(b)
}

// beyondGranted lists what a module asks for that neither was granted nor did
// the first module ask for.
func (s *session) beyondGranted(next *plan) (more []string) {
	asked := append(slices.Clone(next.asks), next.seen()...)
	for _, c := range grant.Beyond(s.bound, asked) {
		more = append(more, ruleText(&c))
	}
	return more
}

// seen are the rights to what the module's own map and filter are shown.
func (p *plan) seen() (rules []abi.Capability) {
	for i := range p.related {
		if w := p.related[i].needs(); w.Seen {
			rules = append(rules, w.Rule())
		}
	}
	return rules
}

// bindRights remembers what no later module may have more than.
func (s *session) bindRights(ctx context.Context) error {
	g, err := s.granted(ctx)
	if err == nil {
		s.bound = append(slices.Clip(g.rules), s.plan.rights...)
	}
	return err
}
