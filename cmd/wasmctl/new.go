// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// newOptions are the flags of new.
type newOptions struct {
	project.New

	lang    string
	types   string
	streams streams
}

// typesKubernetes is the value of --types.
const typesKubernetes = "kubernetes"

func newCmdNew(s streams) *cobra.Command {
	o := &newOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "new NAME --lang go|tinygo|rust [--types kubernetes | --webhooks]",
		Short: "Create a project with a working, tested reconciler",
		Long: `Creates the directory NAME with a reconciler that maintains a ConfigMap for each object of a new kind: source, unit tests, cases for
wasmctl test, CRD, sample, Makefile and README. Existing files are never overwritten. With --webhooks, it also has a webhook that
sets defaults and one that validates.

With --types kubernetes, the project is an operator on controller-runtime, of the shape of kubebuilder: Go types for the kind, from
which controller-gen makes CRD and role, and the types of k8s.io/api. It builds natively too.`,
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
			switch o.Typed = o.types == typesKubernetes; {
			case o.types != "" && !o.Typed:
				return usageError(cmd, fmt.Errorf("--types %q: want %s", o.types, typesKubernetes))
			case o.Typed && o.Lang != project.Go:
				return usageError(cmd, fmt.Errorf("--types %s: works only with --lang go, not with --lang %s", o.types, o.lang))
			case o.Typed && o.Webhooks:
				return usageError(cmd, fmt.Errorf("--webhooks cannot be combined with --types %s: kubebuilder create webhook adds them to the project", o.types))
			}
			return runNew(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.lang, "lang", "", strings.Join(project.Toolchains, ", ")+"; tinygo builds smaller modules from Go")
	f.StringVar(&o.types, "types", "", typesKubernetes+" creates an operator on controller-runtime, with Go types (default: fields of objects, without types)")
	f.BoolVar(&o.Webhooks, "webhooks", false, "Add a webhook that sets defaults and one that validates, with cases")
	f.StringVar(&o.Kind, "kind", "", "Reconcile this `kind`, written as Widget.example.dev/v1 (default: derived from NAME)")
	f.StringVar(&o.SDK, "sdk", "", "Use the SDK of this wasmctl `checkout` (default: the released SDK; in a development build, its own checkout)")
	_ = cmd.RegisterFlagCompletionFunc("types", cobra.FixedCompletions([]string{typesKubernetes}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("lang", cobra.FixedCompletions(project.Toolchains, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runNew(ctx context.Context, o *newOptions) error {
	if version != "dev" {
		o.Release = version
	}
	files, err := o.Create()
	if errors.Is(err, project.ErrBadName) {
		return failure.Usage.Wrap(err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.streams.out, "created %s: %s\n\nnext:\n  cd %s\n  wasmctl build\n  make test\n  wasmctl run %s.wasm --dev\n",
		o.Dir, strings.Join(files, ", "), o.Dir, o.Name())
	if err == nil && (o.Typed || o.Release != "" && o.SDK == "" && o.Lang != project.Rust) {
		o.tidy(ctx)
	}
	return err
}

// tidy writes go.sum for the released SDK or controller-runtime. If that fails, for example without a
// network, it asks the user to do so.
func (o *newOptions) tidy(ctx context.Context) {
	cmd := exec.CommandContext(ctx, "go", "mod", "tidy")
	cmd.Dir, cmd.Stderr = o.Dir, o.streams.err
	defer o.streams.progress.Start("go mod tidy").End()
	if err := cmd.Run(); err != nil {
		_, _ = fmt.Fprintf(o.streams.err, "wasmctl: go mod tidy: %v; run it in %s before the build\n", err, o.Dir)
	}
}
