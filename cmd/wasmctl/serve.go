// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/guestprocess"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/serve"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/uninstall"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/oci"
	"github.com/wasmctl/wasmctl/host/share"
)

// serveOptions are the flags of serve, in addition to those of a process.
type serveOptions struct {
	run         runOptions
	config      serve.Config // its Bounds and Allow are set by complete
	share       string
	memory      string
	timeout     time.Duration
	concurrency int
	allowed     []string
	private     bool
	cache       string
	watches     int
}

// Values of --share.
const (
	shareReconcilers = "reconcilers"
	shareObjects     = "objects"
)

func newCmdServe(s streams) *cobra.Command {
	o := &serveOptions{run: runOptions{streams: s}}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the modules of Reconciler and ClusterReconciler resources",
		Long: `Runs a module for each Reconciler and ClusterReconciler of the cluster, until SIGINT or SIGTERM. Install their CRDs first: wasmctl crds.
A Reconciler acts as a service account of its namespace, and has no access to other namespaces. When the resource names another module,
that module is swapped in while the process runs. The resource's status shows the live module, the next module, and problems. With
--shards, each Reconciler runs on exactly one replica. With --share objects as well, each replica runs all Reconcilers, for a part of
their objects.

Exit codes:
` + exitTable(),
		Example: `  # Install the kinds, then serve
  wasmctl crds | kubectl apply -f -
  wasmctl serve

  # Reconcilers of two namespaces only
  wasmctl serve -n team-a,team-b`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(guestprocess.Supported); err != nil {
				return usageError(cmd, err)
			}
			return runRun(cmd.Context(), &o.run)
		},
	}
	cmd.Flags().SortFlags = false
	o.bind(cmd)
	return cmd
}

// bind adds the flags to a command.
func (o *serveOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVarP(&o.config.Namespaces, "namespace", "n", nil, "Serve only Reconcilers in these `namespaces`, and no ClusterReconcilers; repeatable")
	f.StringVar(&o.config.ServiceAccount, "default-service-account", "default", "Run Reconcilers as this service `account` of their namespace if they name none")
	f.StringVar(&o.memory, "max-memory", "256Mi", "Limit the memory of one module instance; a Reconciler can lower it")
	f.DurationVar(&o.timeout, "max-timeout", 30*time.Second, "Limit the duration of one reconcile; a Reconciler can lower it")
	f.IntVar(&o.concurrency, "max-concurrency", 16, "Let each Reconciler reconcile at most this many objects at a time")
	f.DurationVar(&o.config.MinFollow, "min-follow", 10*time.Second, "Look no more often than this whether a followed tag has another module")
	f.StringArrayVar(&o.allowed, "registry-allow", nil, "Let Reconcilers name modules of this `host`[:port][/repository] only, and of repositories below it; a host can have globs; repeatable")
	f.BoolVar(&o.private, "registry-private", true, "Let Reconcilers use registries at private addresses; if false, only those that --registry-allow or --insecure-registry names")
	f.StringVar(&o.cache, "max-cache", "256Mi", "Limit the memory of the objects that the Reconcilers of one namespace cache together")
	f.IntVar(&o.watches, "max-watches", 200, "Limit the watches that the Reconcilers of one namespace have together; those of equal objects count once")
	f.StringVar(&o.share, "share", shareReconcilers, "With --shards: distribute the \"reconcilers\", so that each runs on exactly one replica, or the \"objects\" of each")
	f.StringVar(&o.config.Isolation.By, "isolate", "", "Run modules in separate processes: each \"controller\" in its own, or each \"tenant\", which is a namespace; without a value, each controller")
	f.Lookup("isolate").NoOptDefVal = serve.ByController
	f.StringSliceVar(&o.config.Isolation.Namespaces, "isolate-namespaces", nil, "With --isolate: isolate only the Reconcilers of these `namespaces`; repeatable")
	flags.Bind(cmd, &o.run.controller, "memo")
	o.run.process.BindTenants(cmd)
	o.run.process.Bind(cmd)
}

// complete validates the flags, and sets the fields that depend on them. isolates reports whether the
// system of the process has guest processes.
func (o *serveOptions) complete(isolates bool) error {
	errs := []error{o.run.process.Validate(), flags.Validate(&o.run.controller)}
	memory, err := resource.ParseQuantity(o.memory)
	if err != nil || memory.Value() < 64<<10 {
		errs = append(errs, fmt.Errorf("--max-memory %q: want a size of at least 64Ki, such as 64Mi", o.memory))
	}
	cache, err := resource.ParseQuantity(o.cache)
	if err != nil || cache.Value() < 1<<20 {
		errs = append(errs, fmt.Errorf("--max-cache %q: want a size of at least 1Mi, such as 256Mi", o.cache))
	}
	if o.config.MinFollow <= 0 {
		errs = append(errs, errors.New("--min-follow must be more than 0"))
	}
	if o.timeout <= 0 || o.concurrency <= 0 || o.watches <= 0 {
		errs = append(errs, errors.New("--max-timeout, --max-concurrency and --max-watches must be more than 0"))
	}
	o.run.tenants = wasmctl.TenantLimits{Cache: cache.Value(), Watches: o.watches}
	o.config.Allow, err = parseAllow(o.allowed)
	errs = append(errs, err, o.config.Isolation.Validate(isolates), checkShare(o.share, o.run.process.Leader.Shards), o.checkWebhooks(o.run.process.Webhooks.Serves(), o.run.process.Leader.Replicates()))
	most := host.Config{Limits: share.Limits{Memory: memory.Value(), Timeout: o.timeout}}.LimitsFor(nil)
	o.config.Bounds = v1alpha1.Bounds{Limits: map[abi.LimitName]int64{}, Concurrency: int32(min(o.concurrency, math.MaxInt32))} //nolint:gosec // bounded
	for _, name := range abi.LimitNames {
		o.config.Bounds.Limits[name] = most.Get(name)
	}
	if o.run.process.Leader.Name == "" {
		o.run.process.Leader.Name = serveLease
	}
	o.run.server = o.server
	return errors.Join(errs...)
}

// parseAllow parses the values of --registry-allow.
func parseAllow(patterns []string) (oci.Allow, error) {
	allow, err := oci.ParseAllow(patterns)
	if err != nil {
		err = fmt.Errorf("--registry-allow %w", err)
	}
	return allow, err
}

func checkShare(share string, shards int) error {
	switch {
	case share != shareReconcilers && share != shareObjects:
		return fmt.Errorf("--share %q: want %q or %q", share, shareReconcilers, shareObjects)
	case share == shareObjects && shards == 0:
		return errors.New("--share objects needs --shards")
	}
	return nil
}

// checkWebhooks returns an error if several replicas serve webhooks, but not all have all modules: the API server calls any of them.
func (o *serveOptions) checkWebhooks(webhooks, replicated bool) error {
	if webhooks && replicated && o.share != shareObjects {
		return errors.New("webhooks with several replicas need --shards --share objects: the API server calls any replica, so each must have all modules")
	}
	return nil
}

// server returns the Server of a cluster.
func (o *serveOptions) server(cluster *rest.Config, log *slog.Logger) (*serve.Server, error) {
	c := o.config
	c.Cluster, c.Log, c.Registry, c.Memo = cluster, log, o.run.process.Registry.Options, o.run.controller.Memo
	c.ShareObjects, c.PublicRegistries = o.share == shareObjects, !o.private
	return serve.New(c)
}

// runUntilStopped is run. If wasmctl serve is being removed from the cluster, it first takes its finalizers off.
func (p *process) runUntilStopped(ctx context.Context, cluster *rest.Config, force <-chan struct{}) error {
	run := func(ctx context.Context) error { return p.run(ctx, force) }
	if p.server == nil {
		return run(ctx)
	}
	l := &uninstall.Leaver{Server: p.server, Cluster: cluster, Replicated: p.process.Leader.Replicates(), Log: p.log}
	return l.Run(ctx, force, run)
}

func newCmdCRDs(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "crds",
		Short:   "Print the CRDs of wasmctl serve",
		Long:    "Prints the CustomResourceDefinitions of the kinds Reconciler and ClusterReconciler, for kubectl apply.",
		Example: `  wasmctl crds | kubectl apply -f -`,
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(s.out, v1alpha1.CRDs)
			return err
		},
	}
}
