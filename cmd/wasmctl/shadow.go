// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// defaultShadow is the default duration of a comparison.
const defaultShadow = time.Minute

// errDiffers is the error of a comparison that has found differences.
var errDiffers = errors.New("the modules differ")

func newCmdShadow(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	options := admin.ShadowOptions{For: defaultShadow}
	var output string
	registry := flags.Registry{Progress: s.progress}
	cmd := &cobra.Command{
		Use:   "shadow CONTROLLER MODULE",
		Short: "Compare another module with the live one, without writing",
		Long: `Runs another module on the runs of a controller's live module: the same objects, reasons and settings. Its reads get the answers
that the live module got. Its writes do not take effect: a write that the live module also made gets the same answer, and any other
write is sent with dryRun=All. Differences are printed per object: writes, declared results, the next action and errors. Times that
differ only by the time between the runs count as equal. Values of Secrets are hidden.

The shadow runs only while the controller is idle, or one run per second if it is never idle. Runs that it has no time for are
counted as dropped.

Exits with 0 if both modules did the same, with ` + fmt.Sprint(exitDiffers) + ` if they did not.`,
		Example: `  wasmctl shadow configmapgenerator new.wasm --for 5m
  wasmctl shadow configmapgenerator new.wasm --all --count 20     # reconcile all objects now; stop after 20 runs
  wasmctl shadow configmapgenerator new.wasm -o json | jq .run.differences`,
		Args: exactArgs("CONTROLLER", "MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if options.For <= 0 || options.Count < 0 {
				return usageError(cmd, errors.New("--for must be positive, and --count not negative"))
			}
			m := registry.Open(args[1])
			wasm, err := registry.Read(cmd.Context(), m)
			if err != nil {
				return err
			}
			options.Proof = flags.Proof(m)
			return o.shadow(cmd.Context(), args[0], wasm, options, printer.Shadow{Out: s.out, AsJSON: output == "json"})
		},
	}
	o.bind(cmd)
	registry.Bind(cmd.Flags())
	registry.BindVerify(cmd.Flags())
	f := cmd.Flags()
	f.DurationVar(&options.For, "for", options.For, "Compare runs for this long")
	f.IntVar(&options.Count, "count", 0, "Stop after this many runs (default: no limit)")
	f.BoolVar(&options.All, "all", false, "Let the live module reconcile all objects once, to produce runs to compare")
	outputFlag(cmd, &output, "text", "json")
	return cmd
}

// shadow starts a comparison and prints its results.
func (o *steerOptions) shadow(ctx context.Context, controller string, wasm []byte, options admin.ShadowOptions, p printer.Shadow) error {
	f, c, err := o.clientFor(ctx, controller)
	if err != nil {
		return err
	}
	task := o.streams.progress.Wait(fmt.Sprintf("comparing the runs of %s, for %v", controller, options.For))
	sum, err := c.Shadow(ctx, controller, wasm, options, p.Run)
	task.End()
	if err != nil {
		return f.failed(ctx, controller, err)
	}
	if err := p.Summary(&sum); err != nil {
		return err
	}
	if sum.Different > 0 {
		return failure.Differs.Wrap(errDiffers)
	}
	return nil
}
