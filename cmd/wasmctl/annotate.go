package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/host"
)

// annotateOptions are the flags of annotate.
type annotateOptions struct {
	module  string
	output  string
	streams streams
}

func newCmdAnnotate(s streams, runF func(context.Context, *annotateOptions) error) *cobra.Command {
	o := &annotateOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "annotate MODULE",
		Short: "Write a module's manifest into its file",
		Long: `Runs the module's describe export, in a sandbox that can do nothing but log, and writes what it returns into the
file's manifest section. After that nobody needs to run the module to know what it wants.`,
		Example: `  # Not needed after wasmctl build, which does both
  GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o module.wasm .
  wasmctl annotate module.wasm`,
		Args: exactArgs("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.module = args[0]
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "file to write (default: MODULE itself)")
	return cmd
}

func runAnnotate(ctx context.Context, o *annotateOptions) error {
	wasm, err := readModule(o.module)
	if err != nil {
		return err
	}
	annotated, manifest, err := project.Annotate(ctx, wasm, moduleName(o.module))
	if err != nil {
		return moduleError(err)
	}
	if o.output == "" {
		o.output = o.module
	}
	if err := project.ReplaceFile(o.output, annotated); err != nil {
		return fmt.Errorf("module[%s]: write: %w", o.output, err)
	}
	_, err = fmt.Fprintf(o.streams.out, "%s: %s, manifest of %q written\n", o.output, bytesText(int64(len(annotated))), manifest.Name)
	return err
}

// moduleError gives errors of a module their exit code.
func moduleError(err error) error {
	if errors.Is(err, host.ErrInvalidModule) {
		return withCode(exitModule, err)
	}
	if errors.Is(err, host.ErrRefused) {
		return withCode(exitUsage, fmt.Errorf("%w; mend --config or --config-file", err))
	}
	return err
}
