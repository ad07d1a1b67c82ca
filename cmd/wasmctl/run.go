// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/progress"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/serve"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/logging"
)

func newCmdRun(s streams) *cobra.Command {
	o := &runOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "run MODULE... | -f FILE",
		Short: "Run modules as controllers",
		Long: `Runs each module as a controller, or as all controllers that it has, until SIGINT or SIGTERM. Then no new reconcile starts and running
ones can finish. A second signal interrupts them. Flags override the module's manifest: the kind that it reconciles, the kinds that it
owns, concurrency and limits.

A kind can have any form that kubectl accepts: cm, configmaps, ConfigMap, deployments.apps, deployments.v1.apps, apps/v1/Deployment.
If a CRD is not installed yet, wasmctl waits for it, provided that you name the kind with its group.

Several modules share watches, cache, workers and one lease. If one fails to start, the others keep running. To give them different
options, use a file: wasmctl run -f controllers.yaml. Its keys are the flags: see wasmctl config check and wasmctl config schema.
When the file changes, wasmctl reads it again and updates only the controllers that changed.

A module has no rights unless you grant them. Use --grant FILE for a list of capabilities, or --grant-manifest (default with --dev)
for everything that the manifest requests. --for and --owns also grant reading those objects and writing the status of reconciled ones.

Exit codes:
` + exitTable(),
		Example: `  # On the cluster that kubectl uses, with the kinds and rights of the manifest
  wasmctl run module.wasm --grant-manifest

  # On a local control plane, started if needed
  wasmctl run module.wasm --dev

  # Another kind, one namespace, selected objects
  wasmctl run module.wasm --for deployments.apps --owns cm -n shop -l tier=web --grant grant.yaml

  # Several controllers from a file
  wasmctl run -f controllers.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(cmd, args); err != nil {
				return usageError(cmd, err)
			}
			return runRun(cmd.Context(), o)
		},
	}
	o.bind(cmd)
	flags.Group(cmd)
	return cmd
}

// runRun runs modules until a signal stops it. A stop while it still waits for the cluster is orderly.
func runRun(ctx context.Context, o *runOptions) error {
	return untilStopped(ctx, o, func(ctx context.Context, log *slog.Logger, force <-chan struct{}) error {
		return runProcess(ctx, o, log, force)
	})
}

// untilStopped calls run with a context that the first SIGINT or SIGTERM ends.
func untilStopped(ctx context.Context, o *runOptions, run func(ctx context.Context, log *slog.Logger, force <-chan struct{}) error) error {
	log, err := logging.New(o.streams.err, o.process.LogFormat, o.process.Verbosity)
	if err != nil {
		return failure.Usage.Wrap(err)
	}
	if o.process.LogFormat == "json" || !o.streams.progress.OnTerminal() { // the log has the tasks, because a JSON log must contain nothing else
		o.streams.progress = progress.New(slog.NewLogLogger(log.Handler(), slog.LevelInfo).Writer())
	}
	o.process.Registry.Progress = o.streams.progress
	quietLibraries(log)
	ctx, force, release := stopOnSignals(ctx, log)
	defer release()
	return stopped(ctx, run(ctx, log, force))
}

// stopped returns err, or nil if the process was stopped while it waited.
func stopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// runOptions are the flags of run: those of the process, and those of its
// controller.
type runOptions struct {
	process    flags.Process
	controller v1alpha1.ControllerSpec

	modules  []string                   // the arguments
	only     string                     // a flag that was set and applies to one controller; "" if none was set
	split    []*v1alpha1.ControllerSpec // the controllers of all modules; nil before checkFiles
	filename string                     // the file of controllers, instead of arguments
	file     *flags.File                // the content of filename; nil without one

	streams streams
	writes  bool // print the writes of runs; not a flag of run

	tenants wasmctl.TenantLimits // of wasmctl serve

	server func(*rest.Config, *slog.Logger) (*serve.Server, error) // nil unless the command is wasmctl serve
}

func (o *runOptions) bind(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVarP(&o.filename, "filename", "f", "", "Read the controllers from this YAML `file`, and again whenever it changes")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	flags.Bind(cmd, &o.controller)
	o.process.Bind(cmd)
}

// aboutOne lists the flags that apply to one controller. For several controllers, a file must set
// them.
var aboutOne = []string{
	"name", "controller", "for", "owns", "selector", "field-selector", "predicate", "config", "config-file", "trigger-on-stdin",
}

// complete sets the modules from the arguments or reads the file of controllers, and validates all
// options.
func (o *runOptions) complete(cmd *cobra.Command, args []string) error {
	o.modules = args
	switch {
	case o.filename != "" && len(args) > 0:
		return fmt.Errorf("--filename and MODULE cannot be combined: put %q into the file", args[0])
	case o.filename != "":
		return o.completeFile(cmd)
	case len(args) == 0:
		return errors.New("MODULE is missing")
	}
	for _, name := range aboutOne {
		if cmd.Flags().Changed(name) {
			o.only = cmp.Or(o.only, name)
		}
	}
	if err := o.checkOnly(len(args)); err != nil {
		return err
	}
	if len(args) > 1 && o.process.Leader.Replicates() && o.process.Leader.Name == "" {
		return errors.New("--leader-elect or --shards of several controllers needs --leader-elect-resource-name")
	}
	errs := []error{o.process.Validate(), o.process.Fits(len(args))}
	for i, c := range o.controllers() {
		if err := flags.Validate(c); i == 0 || err == nil || errs[len(errs)-1] == nil || err.Error() != errs[len(errs)-1].Error() {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// checkOnly returns an error if a flag applies to one controller but there are several.
func (o *runOptions) checkOnly(controllers int) error {
	if o.only != "" && controllers > 1 {
		return fmt.Errorf("--%s applies to one controller, but there are %d: set it in a file, with wasmctl run -f", o.only, controllers)
	}
	return nil
}

// completeFile reads the file of controllers. Flags of the process take
// precedence over the file; flags of controllers cannot be combined with it.
func (o *runOptions) completeFile(cmd *cobra.Command) error {
	var errs []error
	for _, f := range flags.Fields {
		if cmd.Flags().Changed(f.Flag) {
			errs = append(errs, fmt.Errorf("--%s applies to one controller: with --filename, set it in the file, as %s", f.Flag, f.Path))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var err error
	if o.file, err = flags.ReadFile(o.filename); err != nil {
		return err
	}
	if err := o.file.Process.Apply(cmd.Flags()); err != nil {
		return err
	}
	if o.process.Leader.Name == "" {
		o.process.Leader.Name = o.file.LeaseName()
	}
	return errors.Join(o.process.Validate(), o.process.Fits(len(o.file.Specs)))
}

// memoDirs returns the directories that --memo names.
func (o *runOptions) memoDirs() []string {
	dirs := []string{v1alpha1.MemoDir(o.controller.Memo)} // also for wasmctl serve
	for _, c := range o.controllers() {
		dirs = append(dirs, v1alpha1.MemoDir(c.Memo))
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" })
}

// controllers returns the spec of each requested controller.
func (o *runOptions) controllers() []*v1alpha1.ControllerSpec {
	switch {
	case o.file != nil:
		return o.file.Specs
	case o.split != nil:
		return o.split
	}
	list := make([]*v1alpha1.ControllerSpec, len(o.modules))
	for i, module := range o.modules {
		c := o.controller
		c.Module.Set(module)
		list[i] = &c
	}
	return list
}

// checkFiles calls the function checkFiles for the requested controllers. For arguments, it replaces
// them by all controllers of their modules.
func (o *runOptions) checkFiles(ctx context.Context) (wrong, err error) {
	all, wrong, err := checkFiles(ctx, &o.process.Registry, o.controllers())
	if err == nil && o.file == nil && o.server == nil {
		o.split = all
		err = failure.Usage.Wrap(errors.Join(o.checkOnly(len(all)), o.process.Fits(len(all))))
	}
	return wrong, err
}
