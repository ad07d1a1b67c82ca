package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/runtime/runner"
)

func newCmdRun(s streams, runF func(context.Context, *runOptions) error) *cobra.Command {
	o := &runOptions{processOptions: processOptions{streams: s}}
	cmd := &cobra.Command{
		Use:   "run MODULE... | -f FILE",
		Short: "Run modules as controllers",
		Long: `Runs each module as a controller until SIGINT or SIGTERM. Then no new reconcile starts, and running ones may finish; a second
signal interrupts them. What the module's manifest says (the kind it is for, the kinds it owns, concurrency, limits) is
overridden by flags.

KIND is whatever kubectl takes: cm, configmaps, ConfigMap, deployments.apps, deployments.v1.apps, apps/v1/Deployment.
A kind of a custom resource whose CRD is not there yet is waited for, if it is named with its group.

Several modules share watches, cache, workers and one lease; one that cannot be started does not stop the others. What is to
differ between them is said in a file (wasmctl run -f controllers.yaml), which can say whatever the flags can: see wasmctl config
check, and wasmctl config schema. A file that changes is read again: only the controllers that it changes are touched.

The module may do nothing that nobody granted it: --grant FILE says what, --grant-manifest accepts what its manifest asks for, and --dev
does that too. What --for and --owns name is granted by that: to read the objects that it reconciles and write their status.

Exit codes:
` + exitTable(),
		Example: `  # On the cluster that kubectl uses, for what the module's manifest says
  wasmctl run module.wasm --grant-manifest

  # On a local control plane, which is started if it does not run
  wasmctl run module.wasm --dev

  # Another kind, one namespace, selected objects
  wasmctl run module.wasm --for deployments.apps --owns cm -n shop -l tier=web --grant grant.yaml

  # Several, each as the file says
  wasmctl run -f controllers.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(cmd, args); err != nil {
				return usageError(cmd, err)
			}
			return runF(cmd.Context(), o)
		},
	}
	o.bind(cmd)
	return cmd
}

// runRun runs a module until it is told to stop. A stop that comes while it
// still waits for the cluster is an orderly one.
func runRun(ctx context.Context, o *runOptions) error {
	return untilStopped(ctx, &o.processOptions, func(ctx context.Context, log *slog.Logger, force <-chan struct{}) error {
		return runProcess(ctx, o, log, force)
	})
}

// untilStopped runs what a process does until signals stop it.
func untilStopped(ctx context.Context, o *processOptions, run func(ctx context.Context, log *slog.Logger, force <-chan struct{}) error) error {
	log, err := newLogger(o.streams.err, o.logFormat, o.verbosity)
	if err != nil {
		return withCode(exitUsage, err)
	}
	quietLibraries(log)
	ctx, force, release := stopOnSignals(ctx, log)
	defer release()
	return stopped(ctx, run(ctx, log, force))
}

// stopped gives the error of a process its exit code.
func stopped(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, runner.ErrForced), errors.Is(err, runner.ErrDrainTimeout):
		return withCode(exitForced, err)
	case err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled):
		return nil
	}
	return err
}

func runProcess(ctx context.Context, o *runOptions, log *slog.Logger, force <-chan struct{}) (err error) {
	p := &process{opts: &o.processOptions, log: log, started: time.Now()}
	defer func() { err = errors.Join(err, p.close()) }()
	if p.tracing, err = newTracing(ctx, p.opts.otlpEndpoint, log); err != nil {
		return withCode(exitUsage, err)
	}
	stop, err := p.serveHTTP(ctx)
	if err != nil {
		return err
	}
	defer stop()
	controllers := o.controllers()
	wrong, err := checkFiles(ctx, controllers)
	if err != nil {
		return err
	}
	var wasm []byte
	if len(o.modules) == 1 {
		if wasm, err = readModule(o.modules[0]); err != nil {
			return err
		}
	}
	if err := p.connect(ctx); err != nil {
		return errors.Join(err, wrong)
	}
	ctx, release := p.watchDev(ctx)
	defer release()
	p.file = o.file
	for _, c := range controllers {
		p.want(c)
	}
	if wasm != nil {
		err = p.loadOne(ctx, wasm)
	} else {
		err = p.electSeveral()
	}
	if err == nil {
		err = p.run(ctx, force)
	}
	if cause := context.Cause(ctx); errors.Is(cause, errDevEnded) {
		return withCode(exitCluster, cause) // whatever failed, failed by that
	}
	return err
}

// loadOne loads the only module of a process, whose name is the Lease's too:
// whatever is wrong with it ends the process.
func (p *process) loadOne(ctx context.Context, wasm []byte) error {
	m := p.members.all()[0]
	m.loaded = &session{process: p, opts: m.opts, log: m.log}
	return m.loaded.prepare(ctx, wasm)
}

// prepare loads the module and checks whether it can be run.
func (s *session) prepare(ctx context.Context, wasm []byte) error {
	if err := s.load(ctx, wasm); err != nil {
		return err
	}
	if err := s.checkAccess(ctx, s.watchedKinds(s.plan)); err != nil {
		return err
	}
	if err := s.checkSelectors(ctx, s.watchedKinds(s.plan)); err != nil {
		return err
	}
	s.announce()
	s.warnAccess(ctx)
	return nil
}

// start builds the controller and gives it to the manager.
func (s *session) start() error {
	var err error
	if s.controller, err = s.newController(); err != nil {
		return err
	}
	s.runs.stored = s.controller.Stored
	if err := s.manager.Add(s.controller); err != nil {
		return err
	}
	return s.show()
}

func (s *session) sayStopped() {
	stats := s.controller.Stats()
	var failed uint64
	for _, n := range stats.Failures {
		failed += n
	}
	s.log.Info("stopped", "controller", s.name, "reconciles", stats.Started, "failed", failed)
}
