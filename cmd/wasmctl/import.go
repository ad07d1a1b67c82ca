// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// importOptions are the flags of import.
type importOptions struct {
	dir     string
	sdk     string
	output  string
	verbose bool
	write   bool
	streams streams
}

func newCmdImport(s streams) *cobra.Command {
	o := &importOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "import [DIR]",
		Short: "Check whether an operator will work as a module",
		Long: `Checks the operator in DIR (default: the current directory), a project that uses controller-runtime. The output shows its controllers,
the rights that it requests, and each problem of running it as a module, with file, line and advice. The command compiles the packages,
but builds no module and changes no file of the project. To build the module, use wasmctl build.

The output also lists the flags and environment variables that the program reads. With --write, they are listed in a new file
wasmctl.yaml, as comments to edit: what is set there is part of the module.

The verdict "fail" means that the build or the start fails; the exit code is 3 then. "warn" means that a function fails or has no effect
when it is used.`,
		Example: `  wasmctl import
  wasmctl import ~/src/my-operator -o json | jq '.findings[] | select(.verdict == "fail")'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.dir, err = dirOf(cmd, args); err != nil {
				return err
			}
			return runImport(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.sdk, "sdk", "", "Use the replacement of controller-runtime in this wasmctl `checkout` (default: as for wasmctl new)")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "Show the output of the Go toolchain, such as downloads")
	f.BoolVar(&o.write, "write", false, "Write wasmctl.yaml with the inputs of the program, unless it exists")
	outputFlag(cmd, &o.output, "text", "json", "yaml")
	return cmd
}

func runImport(ctx context.Context, o *importOptions) error {
	po := project.Options{SDK: o.sdk}
	if version != "dev" {
		po.Release = version
	}
	if o.verbose {
		po.Stderr = o.streams.err
	}
	task := o.streams.progress.Start("reading " + o.dir)
	r, err := project.Check(ctx, o.dir, po)
	task.End()
	switch {
	case errors.Is(err, project.ErrNoProject):
		return failure.Usage.Wrap(err)
	case err != nil:
		return engine.ModuleError(err)
	}
	if err := printer.Output(o.streams.out, o.output, r, func() []byte { return printer.Import(r) }); err != nil {
		return err
	}
	if o.write {
		if err := project.WriteInputs(o.dir, r.Inputs); err != nil {
			return failure.Usage.Wrap(err)
		}
	}
	if n := r.Fails(); n > 0 {
		return failure.Module.Wrap(fmt.Errorf("operator[%s]: will not work as a module as it is: %s", r.Name, humanize.Plural(n, "problem")))
	}
	return nil
}
