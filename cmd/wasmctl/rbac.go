// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/deploy"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/text"
)

// rbacOptions are the flags of rbac.
type rbacOptions struct {
	module  string
	output  string
	account string
	serve   rbacServe

	leader     flags.Leader
	shards     bool
	webhooks   bool
	process    flags.Process
	controller v1alpha1.ControllerSpec
	streams    streams
}

func newCmdRBAC(s streams) *cobra.Command {
	o := &rbacOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "rbac MODULE | --serve",
		Short: "Print the RBAC objects that let a module run, or wasmctl serve",
		Long: `Prints a ServiceAccount, and roles and bindings with the minimal rights for the module: the capabilities that its manifest requests,
within --grant and --namespace as for wasmctl run, its watches, the status of the kind that it reconciles, its finalizer, and events
of the host. Run the module under that account: in a pod, or with wasmctl run --as system:serviceaccount:NAMESPACE:NAME.

The command looks up the plurals of kinds in the cluster. If no cluster is configured or it does not know a kind yet, it guesses the
plural and prints a note. RBAC has no rules for fields: only wasmctl enforces the fields that a capability is limited to.

With --serve, the rights are those of wasmctl serve itself. It can impersonate the service accounts of Reconcilers, and thus has all
their rights. With --constrained-impersonation, it cannot impersonate any account as a whole: use --as and the modules of an account to
print the rights that it needs as this account. The account needs its own rights as well: print them without --serve.`,
		Example: `  wasmctl rbac module.wasm --serviceaccount ops:web | kubectl apply -f -
  wasmctl rbac module.wasm -n shop --leader-elect
  wasmctl rbac module.wasm --shards
  wasmctl rbac module.wasm --grant grant.yaml

  # For wasmctl serve, which may act as the account "web" only as far as the module needs
  wasmctl rbac --serve --constrained-impersonation
  wasmctl rbac --serve --constrained-impersonation --as system:serviceaccount:shop:web module.wasm -n shop`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(o.validate(), o.serve.validate(len(args))); err != nil {
				return usageError(cmd, err)
			}
			if o.serve.serve {
				objects, err := o.serveObjects(cmd.Context(), args)
				return cmp.Or(err, o.write(objects))
			}
			o.module = args[0]
			return runRBAC(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	flags.Bind(cmd, &o.controller, "for", "owns", "namespace", "all-namespaces", "name", "controller", "grant")
	f.StringVar(&o.account, "serviceaccount", "", "Grant the rights to this service account, as NAMESPACE:NAME (default: default:wasmctl- and the controller's name)")
	f.BoolVar(&o.leader.Elect, "leader-elect", false, "Add the rights for leader election")
	f.BoolVar(&o.shards, "shards", false, "Add the rights for sharing the objects with other replicas")
	f.BoolVar(&o.webhooks, "webhooks", false, "Add the rights to register webhooks behind a Service that has the namespace and the name of the service account")
	f.StringVar(&o.leader.Namespace, "leader-elect-resource-namespace", "", "Put the Lease into this `namespace` (default: that of the service account)")
	f.StringVar(&o.leader.Name, "leader-elect-resource-name", "", "Name the Lease (default: wasmctl- and the controller's name)")
	o.serve.bind(cmd)
	o.process.Kubeconfig.Bind(cmd, "Use this kubeconfig `file` (default: as wasmctl run)")
	o.process.Registry.Bind(f)
	o.process.Registry.BindVerify(f)
	outputFlag(cmd, &o.output, "yaml", "json")
	return cmd
}

func (o *rbacOptions) validate() error {
	var errs []error
	if ns, name, ok := strings.Cut(o.account, ":"); o.account != "" && (!ok || ns == "" || name == "" || strings.Contains(name, ":")) {
		errs = append(errs, fmt.Errorf("--serviceaccount %q: want NAMESPACE:NAME", o.account))
	}
	return errors.Join(append(errs, flags.Validate(&o.controller))...)
}

func runRBAC(ctx context.Context, o *rbacOptions) error {
	kinds := newGuess(&o.process)
	o.controller.Module.Set(o.module)
	defer o.streams.progress.Start("finding the rights of " + o.module).End()
	all, events, name, err := leastOfAll(ctx, kinds, &o.process.Registry, &o.controller)
	if err != nil {
		return err
	}
	tellGuessed(o.streams, kinds)
	account := o.accountOf(name)
	return o.write(grant.RBAC(account, append(all.Rules, o.hostRules(account, name, events, all.Converts)...)))
}

// hostRules returns the rights that the host itself needs: to record events about the controllers,
// possibly outside its own namespace, for the Lease, and for the conversions of CRDs.
func (o *rbacOptions) hostRules(account grant.Account, controller string, outside []abi.Capability, crds []string) []abi.Capability {
	hooks := o.webhookRules(account, crds)
	if !o.leader.Elect && !o.shards {
		return slices.Concat(grant.EventRules(account.Namespace), outside, hooks)
	}
	ns := cmp.Or(o.leader.Namespace, account.Namespace)
	return slices.Concat(grant.EventRules(ns), o.leaseRules(ns, o.leader.LeaseName(controller)), hooks)
}

// webhookRules returns the rights to register webhooks.
func (o *rbacOptions) webhookRules(account grant.Account, crds []string) []abi.Capability {
	if !o.webhooks {
		return nil
	}
	return deploy.WebhookRights(account.Namespace, account.Name, crds)
}

// leaseRules returns the rights to Leases that replicas need.
func (o *rbacOptions) leaseRules(namespace, name string) (rules []abi.Capability) {
	if o.leader.Elect {
		rules = grant.LeaseRules(namespace, name)
	}
	if o.shards {
		rules = append(rules, grant.ShardRules(namespace)...)
	}
	return rules
}

// leastOfAll returns the minimal rules for all controllers of a module and the CRDs that it converts, the
// rules for events about them, and the name of the controller, or of the module if it has several
// controllers.
func leastOfAll(ctx context.Context, kinds *plan.Guess, from *flags.Registry, o *v1alpha1.ControllerSpec) (sum plan.Least, events []abi.Capability, name string, err error) {
	all, err := controllersOf(ctx, from, o)
	if err != nil {
		return sum, nil, "", err
	}
	for _, c := range all {
		l, of, err := least(ctx, kinds, from, c)
		if err != nil {
			return sum, nil, "", err
		}
		sum.Rules, sum.Converts = append(sum.Rules, l.Rules...), append(sum.Converts, l.Converts...)
		events, name = append(events, grant.EventRules(plan.EventNamespace(l.Namespaces))...), of
	}
	if len(all) > 1 {
		name = flags.ModuleName(o.Module.String())
	}
	return sum, events, name, nil
}

// least returns the minimal rights for a controller, as plan.LeastRights does, and the controller's
// name.
func least(ctx context.Context, kinds *plan.Guess, from *flags.Registry, o *v1alpha1.ControllerSpec) (*plan.Least, string, error) {
	info, err := describedModule(ctx, from, o)
	if err != nil {
		return nil, "", err
	}
	man := cmp.Or(info.Manifest, &abi.Manifest{})
	files, err := flags.ReadFiles(o)
	if err != nil {
		return nil, "", err
	}
	options := plan.Options{ControllerSpec: *o, Grant: files.Grant}
	name := controllerName(o, man)
	signers, err := wasmctl.Signers(from.Open(o.Module.String()), info.Digest)
	if err != nil {
		return nil, "", err
	}
	l, err := plan.LeastRights(ctx, options, name, kinds, plan.Asking{Digest: info.Digest, Signers: signers, Manifest: info.Manifest, CanCall: info.CanCall})
	return l, name, err
}

// newGuess returns a Guess that looks kinds up in the cluster of the flags, if there is one.
func newGuess(o *flags.Process) *plan.Guess {
	config, err := requestConfig(o.Kubeconfig)
	if err != nil {
		return &plan.Guess{}
	}
	client, err := kubeapi.NewClient(config)
	if err != nil {
		return &plan.Guess{}
	}
	return &plan.Guess{Resolver: kinds.NewResolver(client, slog.New(slog.DiscardHandler))}
}

// tellGuessed prints a note about each guessed kind.
func tellGuessed(s streams, kinds *plan.Guess) {
	for _, guessed := range kinds.Guessed {
		_, _ = fmt.Fprintf(s.err, "wasmctl: guessed because no cluster knows the kind: %s\n", text.Line(guessed)) // advice
	}
}

func (o *rbacOptions) write(objects []any) error {
	if o.output == "json" {
		return printer.JSON(o.streams.out, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
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
