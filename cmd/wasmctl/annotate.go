// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/internal/atomicfile"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// annotateOptions are the flags of annotate.
type annotateOptions struct {
	module  string
	output  string
	streams streams
}

func newCmdAnnotate(s streams) *cobra.Command {
	o := &annotateOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "annotate MODULE",
		Short: "Write the manifest of a module into its file",
		Long: `Calls the module's describe export in a sandbox that can only log, and writes the returned manifest into a section of the file,
uncompressed. Other commands then read the manifest without running the module.`,
		Example: `  # Not needed after wasmctl build, which does both
  GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o module.wasm .
  wasmctl annotate module.wasm`,
		Args: exactArgs("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.module = args[0]
			return runAnnotate(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "Write to this `file` (default: MODULE itself)")
	return cmd
}

func runAnnotate(ctx context.Context, o *annotateOptions) error {
	wasm, err := wasmctl.File(o.module).Read(ctx)
	if err != nil {
		return err
	}
	task := o.streams.progress.Start("asking " + o.module + " for its manifest")
	annotated, d, err := project.Annotate(ctx, wasm, host.Config{Name: flags.ModuleName(o.module)})
	task.End()
	if err != nil {
		return engine.ModuleError(err)
	}
	output := cmp.Or(o.output, o.module)
	if err := atomicfile.Replace(output, annotated, 0o644); err != nil {
		return fmt.Errorf("module[%s]: write: %w", output, err)
	}
	warn(o.streams, output, d)
	for _, m := range d.Manifests {
		if _, err := fmt.Fprintf(o.streams.out, "%s: %s, manifest of %q written\n", output, humanize.BytesExact(int64(len(annotated))), m.Name); err != nil {
			return err
		}
	}
	return nil
}

// warn prints the warnings of all manifests, and the controllers that were left out.
func warn(s streams, file string, d project.Described) {
	var lines []string
	for _, err := range d.LeftOut {
		lines = append(lines, "a controller is left out: "+err.Error())
	}
	for _, m := range d.Manifests {
		_, more := share.Limits{}.For(m)
		for _, name := range more {
			lines = append(lines, "it needs more than the default limits: run it with "+limitFlag(name, m.Limits.Get(name)))
		}
		lines = append(lines, m.Warnings()...)
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) { // several controllers may need the same
		_, _ = fmt.Fprintf(s.err, "%s: warning: %s\n", file, line)
	}
}

// limitFlag returns the flag of run that sets a limit to a value of a manifest.
func limitFlag(name abi.LimitName, value int64) string {
	switch name {
	case abi.LimitTimeout:
		return "--timeout " + (time.Duration(value) * time.Millisecond).String()
	case abi.LimitMemory:
		return "--memory " + share.LimitText(name, value)
	default:
		return "--limit " + string(name) + "=" + share.LimitText(name, value)
	}
}
