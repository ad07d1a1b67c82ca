package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// inspectOptions are the flags of inspect.
type inspectOptions struct {
	module   string
	registry flags.Registry
	output   string
	verbose  bool
	streams  streams
}

func newCmdInspect(s streams) *cobra.Command {
	o := &inspectOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "inspect MODULE",
		Short: "Show the contents of a module without running it",
		Long: `Shows digest, size, ABI, toolchain, exports, imports, memory and manifest of a module, and each problem that would keep it from
loading. Exits with 3 if there is a problem. The module is not run. The functions of WASI are counted; -v lists them.`,
		Example: `  wasmctl inspect module.wasm
  wasmctl inspect module.wasm -o json | jq .manifest.capabilities`,
		Args: exactArgs("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.module = args[0]
			return runInspect(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "List the imported functions of WASI")
	o.registry.Bind(cmd.Flags())
	outputFlag(cmd, &o.output, "text", "json", "yaml")
	return cmd
}

func runInspect(ctx context.Context, o *inspectOptions) error {
	wasm, err := o.registry.Open(o.module).Read()
	if err != nil {
		return err
	}
	info := host.Inspect(ctx, wasm)
	if err := printer.Output(o.streams.out, o.output, info, func() []byte { return printer.Info(info, o.verbose) }); err != nil {
		return err
	}
	if n := len(info.Problems); n > 0 {
		return failure.Module.Wrap(fmt.Errorf("module[%s]: cannot be loaded: %s", o.module, humanize.Plural(n, "problem")))
	}
	return nil
}
