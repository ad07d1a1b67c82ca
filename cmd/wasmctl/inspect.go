// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/plan"
)

// inspected is the output of inspect.
type inspected struct {
	*load.Info

	// Signers are the keys of --verify-key that have signed the module.
	Signers []string `json:"signers,omitempty"`
	// Shards is the attribute by which --shards splits the objects. It is nil without a manifest.
	Shards *plan.Split `json:"shards,omitempty"`
}

// inspectOptions are the flags of inspect.
type inspectOptions struct {
	module   string
	registry flags.Registry
	output   string
	verbose  bool
	streams  streams
}

func newCmdInspect(s streams) *cobra.Command {
	o := &inspectOptions{streams: s, registry: flags.Registry{Progress: s.progress}}
	cmd := &cobra.Command{
		Use:   "inspect MODULE",
		Short: "Show the contents of a module without running it",
		Long: `Shows digest, size, ABI, toolchain, exports, imports, memory and manifest of a module, and each problem that would keep it from
loading. Exits with 3 if there is a problem. The module is not run. The functions of WASI are counted; -v lists them. Shards shows the
attribute by which --shards splits the objects, and why; a cluster-scoped kind without deletes is split by uid.`,
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
	o.registry.BindVerify(cmd.Flags())
	outputFlag(cmd, &o.output, "text", "json", "yaml")
	return cmd
}

func runInspect(ctx context.Context, o *inspectOptions) error {
	m := o.registry.Open(o.module)
	wasm, err := o.registry.Read(ctx, m)
	if err != nil {
		return err
	}
	info := inspected{Info: load.Inspect(ctx, wasm)}
	if info.Signers, err = wasmctl.Signers(m, info.Digest); err != nil {
		return err
	}
	if info.Manifest != nil {
		info.Shards = new(plan.SplitOf(info.Manifest))
	}
	if err := printer.Output(o.streams.out, o.output, info, func() []byte { return printer.Info(info.Info, info.Signers, info.Shards, o.verbose) }); err != nil {
		return err
	}
	if n := len(info.Problems); n > 0 {
		return failure.Module.Wrap(fmt.Errorf("module[%s]: cannot be loaded: %s", o.module, humanize.Plural(n, "problem")))
	}
	return nil
}
