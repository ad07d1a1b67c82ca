package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
)

// rbacOptions are the flags of rbac.
type rbacOptions struct {
	module  string
	output  string
	account string

	leader     leaderOptions
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
its manifest asks for, within --grant and --namespace if these are given as to wasmctl run, its watches, the status of the kind it
reconciles, its finalizer, and events of the host. Run it as that account: in a pod, or with
wasmctl run --as system:serviceaccount:NAMESPACE:NAME.

The cluster is asked for the plurals of kinds; where there is none, or it does not have a kind yet, they are guessed, and it is said.
RBAC knows no fields of objects: the fields that a capability is limited to are held by wasmctl alone.`,
		Example: `  wasmctl rbac module.wasm --serviceaccount ops:web | kubectl apply -f -
  wasmctl rbac module.wasm -n shop --leader-elect
  wasmctl rbac module.wasm --grant grant.yaml`,
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
	f.StringSliceVarP(&o.controller.namespaces, "namespace", "n", nil, "watch these namespaces only, and without --grant let the module act in no others; may be repeated")
	f.BoolVarP(&o.controller.allNamespaces, "all-namespaces", "A", false, "watch all namespaces, whatever the manifest says")
	f.StringVar(&o.account, "serviceaccount", "", "the account, as NAMESPACE:NAME (default: default:wasmctl- and the controller's name)")
	f.StringVar(&o.controller.name, "name", "", "name of the controller (default: the manifest's, else the file's)")
	f.StringVar(&o.controller.rights.grantFile, "grant", "", "YAML file of what the module may do: what it asks for beyond that is left out")
	f.BoolVar(&o.leader.elect, "leader-elect", false, "add what the lease of an election takes")
	f.StringVar(&o.leader.namespace, "leader-elect-resource-namespace", "", "namespace of the Lease (default: the account's)")
	f.StringVar(&o.leader.name, "leader-elect-resource-name", "", "name of the Lease (default: wasmctl- and the controller's name)")
	f.StringVar(&o.process.kubeconfig, "kubeconfig", "", "kubeconfig file (default: as wasmctl run)")
	f.StringVar(&o.process.context, "context", "", "context of the kubeconfig")
	f.StringVarP(&o.output, "output", "o", "yaml", "yaml or json")
	_ = cmd.MarkFlagFilename("kubeconfig")
	_ = cmd.MarkFlagFilename("grant", "yaml", "yml")
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
	kinds := newGuessing(&o.process)
	o.controller.module = o.module
	l, err := o.controller.least(ctx, kinds)
	if err != nil {
		return err
	}
	kinds.tell(o.streams)
	account := o.accountOf(l.name)
	return o.write(grant.RBAC(account, append(l.rules, o.hostRules(account, l)...)))
}

// hostRules are what the host itself takes: events about the controller, which are
// where session.place says, and the Lease.
func (o *rbacOptions) hostRules(account grant.Account, l *least) []abi.Capability {
	if !o.leader.elect {
		outside := namespaceOutside(l.namespaces)
		return append(grant.EventRules(account.Namespace), grant.EventRules(outside)...)
	}
	ns := o.leader.namespace
	if ns == "" {
		ns = account.Namespace
	}
	return append(grant.EventRules(ns), grant.LeaseRules(ns, o.leader.leaseName(l.name))...)
}

// least says what running a controller takes of the API at least, beside events
// and a Lease: what its module asks for, within its grant's file if there is one.
func (o *controllerOptions) least(ctx context.Context, kinds finder) (*least, error) {
	info, err := inspectModule(ctx, o.module)
	if err != nil {
		return nil, err
	}
	man := info.Manifest
	if man == nil {
		if describeHint(info) != "" {
			return nil, withCode(exitModule, fmt.Errorf("module[%s]: its manifest is not in the file; write it there with: wasmctl annotate %s", o.module, o.module))
		}
		man = &abi.Manifest{}
	}
	out := &least{name: o.controllerName(man)}
	g, err := o.grantedBy(ctx, kinds, out.name)
	if err != nil {
		return nil, err
	}
	kind, p, err := o.within(ctx, kinds, g, man)
	if err != nil {
		return nil, err
	}
	out.namespaces = kind.watch.Namespaces
	needs := needsOf(kind, p)
	if g.all {
		out.rules = needs.AccessRules(info.CanCall)
		return out, nil
	}
	needs.Capabilities = man.Capabilities
	out.rules = kubeapi.Intersect(needs.AccessRules(info.CanCall), g.rules)
	return out, nil
}

// controllerName is what a controller is called whose module has this manifest.
func (o *controllerOptions) controllerName(m *abi.Manifest) string {
	return host.Config{Name: o.name, Fallback: moduleName(o.module)}.NameFor(m)
}

// grantedBy returns what the grant's file lets a module do, without one all.
func (o *controllerOptions) grantedBy(ctx context.Context, kinds finder, controller string) (*granted, error) {
	f, _, err := o.rights.readGrant()
	if err != nil || o.rights.grantFile == "" {
		return &granted{all: true}, err
	}
	rules, err := o.granted(ctx, kinds, f, controller)
	return &granted{rules: rules, log: slog.New(slog.DiscardHandler)}, err
}

// within says what is watched of what a manifest asks for.
func (o *controllerOptions) within(ctx context.Context, kinds finder, g *granted, m *abi.Manifest) (kind watched, p *plan, err error) {
	if kind, err = o.reconciled(ctx, kinds, m); err != nil {
		return kind, nil, err
	}
	if kind, err = g.narrow(kind); err != nil {
		return kind, nil, err
	}
	if p, err = o.plan(ctx, kinds, kind, m); err != nil || g.all {
		return kind, p, err
	}
	return kind, p, g.bound(kind, p)
}

// least is what a controller takes of the API, and what it is called.
type least struct {
	name       string
	rules      []abi.Capability
	namespaces []string // in which the kind is watched that is reconciled; none for all
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
