package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
)

// buildOptions are the flags of build.
type buildOptions struct {
	dir       string
	toolchain string
	file      string
	output    string
	streams   streams
}

func newCmdBuild(s streams, runF func(context.Context, *buildOptions) error) *cobra.Command {
	o := &buildOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "build [DIR]",
		Short: "Build a project to a module",
		Long: `Builds the project in DIR (default: here) with the flags that its toolchain needs, and writes the manifest into the module.
A Cargo.toml means Rust, Go files mean the standard toolchain; --toolchain, or "toolchain: tinygo" in DIR/wasmctl.yaml, says
otherwise. The same source and toolchain give the same bytes.`,
		Example: `  # NAME.wasm in the project's folder
  wasmctl build

  # A tenth of the size, with TinyGo
  wasmctl build examples/webapp --toolchain tinygo --file webapp.wasm`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.dir, err = dirOf(cmd, args); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return usageError(cmd, err)
			}
			return runF(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.toolchain, "toolchain", "", strings.Join(project.Toolchains, ", ")+" (default: by what is in DIR)")
	f.StringVarP(&o.file, "file", "f", "", "module to write (default: NAME.wasm in DIR)")
	f.StringVarP(&o.output, "output", "o", "text", strings.Join(resultFormats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("toolchain", cobra.FixedCompletions(project.Toolchains, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(resultFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// resultFormats are the values of -o where there is no YAML.
var resultFormats = []string{"text", "json"}

func (o *buildOptions) validate() error {
	if !slices.Contains(resultFormats, o.output) {
		return fmt.Errorf("--output %q: want one of %s; --file names the module", o.output, strings.Join(resultFormats, ", "))
	}
	_, err := project.ParseToolchain(o.toolchain)
	return err
}

func runBuild(ctx context.Context, o *buildOptions) error {
	res, err := project.Build(ctx, o.dir, project.Options{
		Toolchain: project.Toolchain(o.toolchain), Output: o.file, Stderr: o.streams.err,
	})
	switch {
	case errors.Is(err, project.ErrNoProject):
		return withCode(exitUsage, err)
	case err != nil:
		return moduleError(err)
	}
	if o.output == "json" {
		return writeJSON(o.streams.out, res)
	}
	_, err = fmt.Fprintf(o.streams.out, "%s: %s, manifest of %q, %s\nbuilt in %v by %s\n",
		res.File, bytesText(res.Size), res.Manifest.Name, res.Digest, res.Took.Round(100*time.Millisecond), res.Version)
	return err
}
