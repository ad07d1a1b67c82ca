package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
)

// resolveLimit bounds how long rbac waits for a cluster, which it can do without.
const resolveLimit = 10 * time.Second

// rbacOptions are the flags of rbac.
type rbacOptions struct {
	module  string
	output  string
	account string
	elect   bool

	process    processOptions
	controller controllerOptions
	streams    streams
}

func newCmdRBAC(s streams, runF func(context.Context, *rbacOptions) error) *cobra.Command {
	o := &rbacOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "rbac MODULE",
		Short: "Print the RBAC objects that let a module run",
		Long: `Prints a ServiceAccount, and the roles and bindings with the least that the module and its watches need of the API server: what
its manifest asks for, its watches, the status of the kind it reconciles, its finalizer, and events of the host. Run it as that
account: in a pod, or with wasmctl run --as system:serviceaccount:NAMESPACE:NAME.

The cluster is asked for the plurals of kinds; where there is none, or it does not have a kind yet, they are guessed, and it is said.
RBAC knows no fields of objects: the fields that a capability is limited to are held by wasmctl alone.`,
		Example: `  wasmctl rbac module.wasm --serviceaccount ops:web | kubectl apply -f -
  wasmctl rbac module.wasm -n shop --leader-elect`,
		Args: exactArgs("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.module = args[0]
			if err := o.validate(); err != nil {
				return usageError(cmd, err)
			}
			return runF(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.controller.forKind, "for", "", "kind to reconcile, as with wasmctl run (default: the manifest's)")
	f.StringArrayVar(&o.controller.owns, "owns", nil, "kind whose owner is reconciled when it changes; may be repeated (default: the manifest's)")
	f.StringSliceVarP(&o.controller.namespaces, "namespace", "n", nil, "watch these namespaces only; may be repeated")
	f.BoolVarP(&o.controller.allNamespaces, "all-namespaces", "A", false, "watch all namespaces, whatever the manifest says")
	f.StringVar(&o.account, "serviceaccount", "", "the account, as NAMESPACE:NAME (default: default:wasmctl- and the controller's name)")
	f.StringVar(&o.controller.name, "name", "", "name of the controller (default: the manifest's, else the file's)")
	f.BoolVar(&o.elect, "leader-elect", false, "add what the lease of an election takes")
	f.StringVar(&o.process.kubeconfig, "kubeconfig", "", "kubeconfig file (default: as wasmctl run)")
	f.StringVar(&o.process.context, "context", "", "context of the kubeconfig")
	f.StringVarP(&o.output, "output", "o", "yaml", "yaml or json")
	_ = cmd.MarkFlagFilename("kubeconfig")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"yaml", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *rbacOptions) validate() error {
	var errs []error
	if o.output != "yaml" && o.output != "json" {
		errs = append(errs, fmt.Errorf("--output %q: want yaml or json", o.output))
	}
	if ns, name, ok := strings.Cut(o.account, ":"); o.account != "" && (!ok || ns == "" || name == "" || strings.Contains(name, ":")) {
		errs = append(errs, fmt.Errorf("--serviceaccount %q: want NAMESPACE:NAME", o.account))
	}
	if len(o.controller.namespaces) > 0 && o.controller.allNamespaces {
		errs = append(errs, errors.New("--namespace and --all-namespaces exclude each other"))
	}
	return errors.Join(errs...)
}

func runRBAC(ctx context.Context, o *rbacOptions) error {
	kinds := newKindFinder(&o.process)
	o.controller.module = o.module
	man, rules, err := kinds.rules(ctx, &o.controller)
	if err != nil {
		return err
	}
	kinds.tellGuesses(o.streams)
	name := host.Config{Name: o.controller.name, Fallback: moduleName(o.module)}.NameFor(man)
	account := o.accountOf(name)
	rules = append(rules, grant.EventRules(account.Namespace)...)
	if o.elect {
		rules = append(rules, grant.LeaseRules(account.Namespace, (&leaderOptions{}).leaseName(name))...)
	}
	return o.write(grant.RBAC(account, rules))
}

// rules returns the least that running a controller takes of the API, beside
// events and a Lease, and the manifest of its module.
func (k *kindFinder) rules(ctx context.Context, o *controllerOptions) (*abi.Manifest, []abi.Capability, error) {
	info, err := inspectModule(ctx, o.module)
	if err != nil {
		return nil, nil, err
	}
	man := info.Manifest
	if man == nil {
		if describeHint(info) != "" {
			return nil, nil, withCode(exitModule, fmt.Errorf("module[%s]: its manifest is not in the file; write it there with: wasmctl annotate %s", o.module, o.module))
		}
		man = &abi.Manifest{}
	}
	needs, err := k.needs(ctx, o, man)
	if err != nil {
		return nil, nil, err
	}
	return man, needs.AccessRules(info.CanCall), nil
}

// tellGuesses says what was not asked of a cluster.
func (k *kindFinder) tellGuesses(s streams) {
	for _, guessed := range k.guessed {
		_, _ = fmt.Fprintf(s.err, "wasmctl: guessed, since no cluster that has the kind was asked: %s\n", guessed) // advice
	}
}

func (o *rbacOptions) write(objects []any) error {
	if o.output == "json" {
		return writeJSON(o.streams.out, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	}
	b, err := grant.YAML(objects)
	if err != nil {
		return err
	}
	_, err = o.streams.out.Write(b)
	return err
}

func (o *rbacOptions) accountOf(controller string) grant.Account {
	ns, name, ok := strings.Cut(o.account, ":")
	if !ok {
		return grant.Account{Namespace: "default", Name: "wasmctl-" + controller}
	}
	return grant.Account{Namespace: ns, Name: name}
}

// kindFinder finds kinds without waiting for any.
type kindFinder struct {
	resolver *kubeapi.Resolver // nil where there is no cluster
	guessed  []string
}

// newKindFinder asks the cluster of the flags, if there is one.
func newKindFinder(o *processOptions) *kindFinder {
	config, err := loadConfig(o.kubeconfig, o.context)
	if err != nil {
		return &kindFinder{}
	}
	client, err := kubeapi.NewClient(config)
	if err != nil {
		return &kindFinder{}
	}
	return &kindFinder{resolver: kubeapi.NewResolver(client, slog.New(slog.DiscardHandler))}
}

// named finds a kind of a flag.
func (k *kindFinder) named(ctx context.Context, flag, name string) (kubeapi.Kind, error) {
	if k.resolver == nil {
		return kubeapi.Kind{}, withCode(exitCluster, fmt.Errorf("%s %s: a kind of a flag is looked up in a cluster: %w", flag, name, errNoCluster))
	}
	ctx, cancel := context.WithTimeout(ctx, resolveLimit)
	defer cancel()
	kind, err := k.resolver.Resolve(ctx, name)
	return kind, kindError(err)
}

// of finds a kind of the manifest, or guesses its plural and that it is
// namespaced.
func (k *kindFinder) of(ctx context.Context, w *abi.Watch) kubeapi.Kind {
	if k.resolver != nil {
		ctx, cancel := context.WithTimeout(ctx, resolveLimit)
		defer cancel()
		kind, err := k.resolver.ResolveGVK(ctx, gvk(w))
		if err == nil {
			return kind
		}
		if !errors.Is(err, kubeapi.ErrUnknownKind) {
			k.resolver = nil // there is no cluster: it is not asked again
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: w.Group, Version: w.Version, Kind: w.Kind})
	k.guessed = append(k.guessed, fmt.Sprintf("the resource of %s is %s, and it is namespaced", gvk(w).GroupKind(), plural.Resource))
	return kubeapi.Kind{Group: w.Group, Version: w.Version, Kind: w.Kind, Resource: plural.Resource, Namespaced: true}
}

// needs says what a manifest under flags takes, as session.plan does for a
// module that runs.
func (k *kindFinder) needs(ctx context.Context, o *controllerOptions, man *abi.Manifest) (*grant.Needs, error) {
	s := &session{opts: o}
	s.kind = watched{watch: s.effectiveWatch(man)}
	var err error
	switch {
	case o.forKind != "":
		if s.kind.Kind, err = k.named(ctx, "--for", o.forKind); err != nil {
			return nil, err
		}
	case man.For != nil:
		s.kind.Kind = k.of(ctx, man.For)
	default:
		return nil, withCode(exitUsage, errors.New("--for is needed: the module's manifest does not say what kind it is for"))
	}
	p := &plan{manifest: man}
	for _, name := range o.owns {
		kind, err := k.named(ctx, "--owns", name)
		if err != nil {
			return nil, err
		}
		p.related = append(p.related, s.placed(watched{kind, abi.Watch{Map: abi.MapOwner}, true}))
	}
	owns := slices.Clone(man.Owns)
	if len(o.owns) > 0 {
		owns = nil
	}
	for _, w := range owns {
		w.Map = abi.MapOwner
		p.related = append(p.related, s.placed(watched{k.of(ctx, &w), w, true}))
	}
	for _, w := range man.Watches {
		p.related = append(p.related, s.placed(watched{k.of(ctx, &w), w, false}))
	}
	return needsOf(s.kind, p), nil
}
