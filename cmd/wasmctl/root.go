package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, s streams) int {
	cmd := newCmdRoot(s)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(s.err, "wasmctl:", err)
	}
	return exitCode(err)
}

func newCmdRoot(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "wasmctl",
		Short: "Run Kubernetes controllers whose logic is a WebAssembly module",
		Long: `wasmctl owns what every controller needs: watches, cache, queue, timers, retries and API access.
The reconcile logic is a sandboxed WebAssembly module, written in Go or another language with an SDK.

Exit codes:
` + exitTable(),
		Example: `  # Try an example on a local control plane
  wasmctl run bin/examples/configmapgenerator.wasm --dev

  # Look at a module without running any of it
  wasmctl inspect module.wasm`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(s.in)
	cmd.SetOut(s.out)
	cmd.SetErr(s.err)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(cmd, err)
	})
	cmd.AddCommand(newCmdRun(s, runRun), newCmdStatus(s), newCmdTrigger(s), newCmdPause(s, true), newCmdPause(s, false), newCmdSwap(s), newCmdPromote(s), newCmdAbort(s), newCmdRollback(s), newCmdConfig(s), newCmdManifests(s),
		newCmdInspect(s, runInspect), newCmdAnnotate(s, runAnnotate), newCmdVersion(s))
	cmd.AddCommand(newCmdShadow(s), newCmdDev(s, runDev))
	cmd.AddCommand(newCmdExplain(s), newCmdLogs(s), newCmdLogLevel(s), newCmdTop(s))
	cmd.AddCommand(newCmdRBAC(s, runRBAC))
	cmd.AddCommand(newCmdValidate(s, runValidate))
	cmd.AddCommand(newCmdNew(s, runNew), newCmdBuild(s, runBuild), newCmdTest(s, runTest))
	return cmd
}

// noCommand says what was probably meant by a command that does not exist.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return usageError(cmd, err)
}

// usageError says where the help is.
func usageError(cmd *cobra.Command, err error) error {
	return withCode(exitUsage, fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath()))
}

// exactArgs wants the named arguments, each once.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usageError(cmd, fmt.Errorf("%s is missing", names[len(args)]))
		case len(args) > len(names):
			return usageError(cmd, fmt.Errorf("unexpected argument %q", args[len(names)]))
		}
		return nil
	}
}
