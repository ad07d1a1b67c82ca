package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
)

// newOptions are the flags of new.
type newOptions struct {
	project.New

	lang    string
	streams streams
}

func newCmdNew(s streams, runF func(context.Context, *newOptions) error) *cobra.Command {
	o := &newOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "new NAME --lang go|tinygo|rust",
		Short: "Make a project: a reconciler that builds, is tested and runs",
		Long: `Makes the folder NAME with a reconciler that keeps a ConfigMap for each object of a new kind: source, unit tests, cases for
wasmctl test, CRD, sample, Makefile and README. Nothing is written over.`,
		Example: `  wasmctl new greeter --lang go --kind Greeting.example.dev/v1
  cd greeter
  wasmctl build && wasmctl test greeter.wasm cases && wasmctl run greeter.wasm --dev`,
		Args: exactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Dir = args[0]
			var err error
			if o.Lang, err = project.ParseToolchain(o.lang); err != nil {
				return usageError(cmd, err)
			}
			if o.Lang == "" {
				return usageError(cmd, fmt.Errorf("--lang is needed: %s", strings.Join(project.Toolchains, ", ")))
			}
			return runF(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.lang, "lang", "", strings.Join(project.Toolchains, ", ")+"; tinygo is Go, built small")
	f.StringVar(&o.Kind, "kind", "", "kind to reconcile, as Widget.example.dev/v1 (default: one of the name NAME)")
	f.StringVar(&o.SDK, "sdk", "", "checkout of wasmctl whose SDK to use (default: the released SDK; in a development build, its own checkout)")
	_ = cmd.RegisterFlagCompletionFunc("lang", cobra.FixedCompletions(project.Toolchains, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runNew(ctx context.Context, o *newOptions) error {
	if version != "dev" {
		o.Release = version
	}
	files, err := o.Create()
	if errors.Is(err, project.ErrBadName) {
		return withCode(exitUsage, err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.streams.out, "made %s: %s\n\nnext:\n  cd %s\n  wasmctl build\n  make test\n  wasmctl run %s.wasm --dev\n",
		o.Dir, strings.Join(files, ", "), o.Dir, o.Name())
	if err == nil && o.Release != "" && o.SDK == "" && o.Lang != project.Rust {
		o.tidy(ctx)
	}
	return err
}

// tidy writes go.sum for the released SDK. Without network the user does it.
func (o *newOptions) tidy(ctx context.Context) {
	cmd := exec.CommandContext(ctx, "go", "mod", "tidy")
	cmd.Dir, cmd.Stderr = o.Dir, o.streams.err
	if err := cmd.Run(); err != nil {
		_, _ = fmt.Fprintf(o.streams.err, "wasmctl: go mod tidy: %v; run it in %s before the build\n", err, o.Dir)
	}
}
