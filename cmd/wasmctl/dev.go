// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/harden"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/filewatch"
)

// devOptions are the flags of dev: those of run, and those of the build.
type devOptions struct {
	runOptions

	dir       string
	toolchain string
	diff      bool
}

// notOfDev lists flags of run that have no meaning for dev.
var notOfDev = []string{"watch"}

func newCmdDev(s streams) *cobra.Command {
	o := &devOptions{runOptions: runOptions{streams: s}}
	cmd := &cobra.Command{
		Use:   "dev [DIR]",
		Short: "Build and run a project, and rebuild it on each save",
		Long: `Builds the project in DIR (default: the current directory) to the file that "wasmctl build" writes, runs it as a controller, and
rebuilds it whenever a file in DIR changes. The new module is swapped in: caches, queue and timers stay, and it reconciles all
objects. If the build fails or the module is refused, the error is printed and the old module keeps running. Each write of a run
is printed with the change that it made.

The command accepts all flags of "wasmctl run". New modules have no probation unless you set --probation,
and may request more rights and watches than the first one. Press Ctrl-C to stop.`,
		Example: `  # On a local control plane, started if needed
  wasmctl dev --dev

  # For a kind other than the manifest's, on the cluster that kubectl uses
  wasmctl dev ./controller --for deployments.apps -n shop`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.dir, err = dirOf(cmd, args); err != nil {
				return err
			}
			if o.controller.GrantFile == "" {
				o.controller.Grant = &v1alpha1.Grant{Manifest: true} // the module is the user's own
			}
			if _, err := project.ParseToolchain(o.toolchain); err != nil {
				return usageError(cmd, fmt.Errorf("--toolchain: %w", err))
			}
			if err := errors.Join(flags.Validate(&o.controller), o.process.Validate()); err != nil {
				return usageError(cmd, err)
			}
			return untilStopped(cmd.Context(), &o.runOptions, o.run)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.toolchain, "toolchain", "", strings.Join(project.Toolchains, ", ")+" (default: detected from the files in DIR)")
	f.BoolVar(&o.diff, "diff", true, "Print what each run writes and what that changes")
	flags.Bind(cmd, &o.controller)
	o.process.Bind(cmd)
	o.controller.Rollout = &v1alpha1.Rollout{Probation: "0s", AllowMoreRights: new(true)} // the module is the user's own
	f.Lookup("probation").DefValue, f.Lookup("allow-more-rights").DefValue = "0s", "true"
	for _, name := range notOfDev {
		_ = f.MarkHidden(name)
	}
	_ = cmd.RegisterFlagCompletionFunc("toolchain", cobra.FixedCompletions(project.Toolchains, cobra.ShellCompDirectiveNoFileComp))
	flags.Group(cmd)
	return cmd
}

// run builds the project to the same file as wasmctl build, and runs that file.
func (o *devOptions) run(ctx context.Context, log *slog.Logger, force <-chan struct{}) error {
	b := &devBuild{options: o, log: log, built: make(chan struct{})}
	ctx, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop(nil)
	wg.Go(func() { stop(b.run(ctx)) })
	select {
	case <-b.built:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	o.modules, o.controller.Module.Watch = []string{b.module}, new(true)
	o.writes, o.process.Harden = o.diff, harden.Off // toolchains may need any file and system call
	err := runProcess(ctx, &o.runOptions, log, force)
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// devBuild builds a project whenever it changes.
type devBuild struct {
	options *devOptions
	log     *slog.Logger
	module  string        // the output of all builds; set by the first successful one
	built   chan struct{} // closed after the first successful build
	once    sync.Once
}

// run builds until ctx ends. It returns an error if there is nothing to build.
func (b *devBuild) run(ctx context.Context) error {
	tree := filewatch.Tree{
		Path: b.options.dir, Skip: notSource, OnChange: func(ctx context.Context) { _ = b.build(ctx) }, // build has logged the error
		OnError: func(err error) { b.log.Warn("falling back to polling for saved files", "error", err.Error()) },
	}
	since, err := tree.Stamp()
	if err != nil {
		return failure.Usage.Wrap(err)
	}
	// Saving a file can fix an error in the source, but neither a directory without a project nor a
	// missing toolchain.
	if err := b.build(ctx); errors.Is(err, project.ErrNoProject) || errors.Is(err, project.ErrNoToolchain) {
		return failure.Usage.Wrap(err)
	}
	return tree.Run(ctx, since)
}

// build builds once. If the build fails, it logs the error, and the old module keeps running.
func (b *devBuild) build(ctx context.Context) error {
	b.log.Info("building", "dir", b.options.dir)
	var output bytes.Buffer // of the compiler, because the log must be JSON only
	o := project.Options{Toolchain: project.Toolchain(b.options.toolchain), Output: b.module, Stderr: b.options.streams.err}
	o.CacheDir, o.CacheKey = flags.CodeCache(b.options.process.CacheDir)
	if b.options.process.LogFormat == "json" {
		o.Stderr = &output
	}
	task := b.options.streams.progress.Start("building " + b.options.dir)
	res, err := project.Build(ctx, b.options.dir, o)
	task.End()
	for line := range strings.Lines(output.String()) {
		b.log.Warn("compiler", "line", strings.TrimRight(line, "\n"))
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		b.log.Error("build failed; keeping the running module; save a file to try again", "error", err.Error())
		return err
	}
	b.log.Info("built", "module", res.File, "toolchain", string(res.Toolchain), "size", humanize.Bytes(res.Size), "took", res.Took.Round(time.Millisecond), "changed", res.Changed)
	b.once.Do(func() {
		b.module = res.File
		close(b.built)
	})
	return nil
}

// notSource reports whether builds ignore a file or directory: hidden files, build outputs, and
// temporary files of editors.
func notSource(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		slices.Contains([]string{"target", "node_modules", "testdata"}, name) || strings.HasSuffix(name, ".wasm")
}
