package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// readGrant reads the grant's file, once: a grant that changes is read at the
// next start.
func (s *session) readGrant() error {
	if s.opts.rights.grantFile == "" || s.grantFile != nil {
		return nil
	}
	content, err := os.ReadFile(s.opts.rights.grantFile)
	if err != nil {
		return withCode(exitUsage, fmt.Errorf("--grant: %w", err))
	}
	if s.grantFile, err = grant.Parse(s.opts.rights.grantFile, content); err != nil {
		return withCode(exitUsage, fmt.Errorf("--grant: %w", err))
	}
	if _, named := s.grantFile.Rules(s.name); !named {
		return withCode(exitUsage, fmt.Errorf("--grant %s: no document is for the controller %s: there are %s; name it with --name, or leave controller out of a document",
			s.opts.rights.grantFile, s.name, strings.Join(s.grantFile.Controllers(), ", ")))
	}
	return nil
}

// grantedRules returns what the operator lets the module do: the grant's file,
// and what flags name. All says that it may do whatever its manifest asks for.
func (s *session) grantedRules(ctx context.Context) (rules []abi.Capability, all bool, err error) {
	if s.opts.rights.grantManifest || s.opts.rights.audit != "" || s.process.opts.dev && s.opts.rights.grantFile == "" {
		return nil, true, nil
	}
	if err := s.readGrant(); err != nil {
		return nil, false, err
	}
	rules, _ = s.grantFile.Rules(s.name)
	if s.opts.forKind != "" {
		k, err := s.resolver.Wait(ctx, s.opts.forKind, s.sayWaiting)
		if err != nil {
			return nil, false, kindError(err)
		}
		rules = append(rules, grant.OwnRights(grant.Watch{Kind: k, Namespaces: s.opts.namespaces})...)
	}
	for _, name := range s.opts.owns {
		k, err := s.resolver.Wait(ctx, name, s.sayWaiting)
		if err != nil {
			return nil, false, kindError(err)
		}
		w := grant.Watch{Kind: k, Namespaces: s.opts.namespaces}
		rules = append(rules, w.Rule())
	}
	return rules, false, nil
}

// narrow keeps a watch to the namespaces in which the operator lets the module
// see its objects.
func (s *session) narrow(k watched, rules []abi.Capability, all bool) (watched, error) {
	if all {
		return k, nil
	}
	w := k.needs()
	namespaces, ok := w.Narrow(rules)
	if !ok {
		return k, withCode(exitDenied, fmt.Errorf("watch of %s: nobody has granted it to the module; %s\n%s", k.Name(), howToGrant, ruleLines([]abi.Capability{w.Rule()})))
	}
	if !slices.Equal(namespaces, k.watch.Namespaces) {
		s.log.Warn("watched only where it is granted", "kind", k.Name(), "namespaces", strings.Join(namespaces, ","), "controller", s.name)
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
	n := &grant.Needs{For: kind.needs(), Finalizer: p.manifest.Finalizer != "", Capabilities: p.manifest.Capabilities}
	for i := range p.related {
		n.Watches = append(n.Watches, p.related[i].needs())
	}
	return n
}

// grantTo decides what the module of a plan may do, and drops the optional
// watches that are not granted.
func (s *session) grantTo(ctx context.Context, p *plan) error {
	if err := kubeapi.CheckRules(p.manifest.Capabilities); err != nil {
		return withCode(exitModule, fmt.Errorf("manifest: %w", err))
	}
	rules, all, err := s.grantedRules(ctx)
	if err != nil {
		return err
	}
	p.policy = kubeapi.NewModulePolicy(s.kind.Kind, s.kind.watch.Namespaces, p.manifest.Capabilities)
	p.rights = needsOf(s.kind, p).Rules()
	if s.opts.rights.audit != "" {
		p.policy = kubeapi.Everything()
	}
	if all {
		return nil
	}
	more := grant.Beyond(rules, p.rights)
	if s.opts.rights.grantFile == "" && len(more) > 0 {
		return withCode(exitDenied, fmt.Errorf("the module asks for rights that nobody has granted it; %s\n%s", howToGrant, ruleLines(more)))
	}
	if err := s.narrowAll(p, rules); err != nil {
		return err
	}
	if needs := (grant.Needs{For: s.kind.needs(), Finalizer: p.manifest.Finalizer != ""}); len(grant.Beyond(rules, needs.FinalizerRules())) > 0 {
		return withCode(exitDenied, fmt.Errorf("the module's finalizer is not granted; %s\n%s", howToGrant, ruleLines(needs.FinalizerRules())))
	}
	p.policy = p.policy.Within(rules)
	p.beyond = grant.Beyond(rules, p.manifest.Capabilities)
	return nil
}

// narrowAll narrows the related watches of a plan.
func (s *session) narrowAll(p *plan, rules []abi.Capability) error {
	var kept []watched
	for _, k := range p.related {
		narrowed, err := s.narrow(k, rules, false)
		switch {
		case err == nil:
			kept = append(kept, narrowed)
		case k.watch.Optional:
			s.log.Warn("optional watch is left out", "kind", k.Name(), "error", err.Error(), "controller", s.name)
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
	asked := append(slices.Clone(next.manifest.Capabilities), next.seen()...)
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

// bind remembers what no later module may have more than.
func (s *session) bindRights(ctx context.Context) error {
	rules, _, err := s.grantedRules(ctx)
	s.bound = append(rules, s.plan.rights...)
	return err
}
