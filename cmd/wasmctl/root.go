// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/progress"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/suggest"
)

// execute runs one command line and returns the exit code. Its output cannot control a terminal, even
// if a module has chosen the text.
func execute(ctx context.Context, args []string, s streams) int {
	s.progress = progress.New(s.err)
	s.out, s.err = printer.NewTerminal(s.progress.Above(s.out)), printer.NewTerminal(s.progress.Above(s.err))
	cmd := newCmdRoot(s)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(s.err, "wasmctl:", err)
		if errors.Is(err, wasmctl.ErrNotGranted) {
			_, _ = fmt.Fprintln(s.err, "The flag --grant grant.yaml gives the module a grant, and --grant-manifest accepts all that it requests.")
		}
		if errors.Is(err, fs.ErrNotExist) && failure.Of(err) == failure.Module {
			_, _ = fmt.Fprintln(s.err, "wasmctl build, in the folder of a project, builds its module.")
		}
		if _, unanswered := errors.AsType[*url.Error](err); unanswered && exitCode(err) == exitCluster {
			_, _ = fmt.Fprintln(s.err, "The API server does not answer: check --kubeconfig, --context and the network.")
		}
	}
	return exitCode(err)
}

func newCmdRoot(s streams) *cobra.Command {
	cobra.EnableCommandSorting = false
	cmd := &cobra.Command{
		Use:   "wasmctl",
		Short: "Run Kubernetes controllers whose logic is a WebAssembly module",
		Long: `wasmctl provides what every controller needs: watches, a cache, a queue, timers, retries and API access.
The reconcile logic is a sandboxed WebAssembly module, written in Go, Rust or another language.`,
		Example: `  # Try an example on a local control plane
  wasmctl run bin/examples/configmapgenerator.wasm --dev

  # Inspect a module without running it
  wasmctl inspect module.wasm`,
		Version:       versionLine(),
		Annotations:   calledAs(os.Args[0]),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetUsageTemplate(cmd.UsageTemplate() + "{{if not .HasParent}}\nExit codes:\n" + exitTable() + "{{end}}")
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.SetIn(s.in)
	cmd.SetOut(s.out)
	cmd.SetErr(s.err)
	cmd.SetFlagErrorFunc(flagError)
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Write a module:", []*cobra.Command{
			newCmdNew(s), newCmdImport(s), newCmdBuild(s), newCmdTest(s), newCmdDev(s),
			newCmdValidate(s), newCmdInspect(s), newCmdAnnotate(s), newCmdPush(s), newCmdPull(s), newCmdSign(s), newCmdVerify(s),
			newCmdSave(s), newCmdLoad(s),
		}},
		{"Run it:", []*cobra.Command{newCmdRun(s), newCmdServe(s), newCmdCRDs(s), newCmdConfig(s), newCmdGrant(s), newCmdRBAC(s), newCmdManifests(s)}},
		{"Install it in a cluster:", []*cobra.Command{newCmdCheck(s), newCmdInstall(s), newCmdUninstall(s)}},
		{"Observe a running process:", []*cobra.Command{newCmdStatus(s), newCmdGet(s), newCmdHistory(s), newCmdExplain(s), newCmdLogs(s), newCmdLogLevel(s), newCmdTop(s)}},
		{"Control it:", []*cobra.Command{newCmdTrigger(s), newCmdPause(s, true), newCmdPause(s, false), newCmdRelease(s)}},
		{"Control Reconcilers:", []*cobra.Command{newCmdSuspend(s), newCmdReconcile(s)}},
		{"Replace its modules:", []*cobra.Command{newCmdSwap(s), newCmdRollback(s), newCmdPromote(s), newCmdAbort(s), newCmdShadow(s)}},
	} {
		cmd.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
		}
		cmd.AddCommand(g.commands...)
	}
	cmd.AddCommand(newCmdVersion(s), newCmdCompile(s), newCmdGuests(s), newCmdStdio(), newCmdMan())
	completeArgs(cmd)
	return cmd
}

// calledAs returns the annotation with the name of the program in help texts, which is different for a
// plugin of kubectl.
func calledAs(program string) map[string]string {
	if plugin, ok := strings.CutPrefix(filepath.Base(program), "kubectl-"); ok {
		return map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl " + plugin}
	}
	return nil
}

// noCommand refuses an unknown command, and suggests similar ones.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(similar, " or "))
	}
	return usageError(cmd, err)
}

// flagError adds the most similar flag to the error of an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if name := suggest.Word(unknown.GetSpecifiedName(), names); name != "" {
			err = fmt.Errorf("%w; did you mean --%s?", err, name)
		}
	}
	return usageError(cmd, err)
}

// usageError adds a reference to the help.
func usageError(cmd *cobra.Command, err error) error {
	return failure.Usage.Wrap(fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath()))
}

// exactArgs requires exactly the named arguments.
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

// maxArgs accepts at most n arguments.
func maxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usageError(cmd, fmt.Errorf("unexpected argument %q", args[n]))
		}
		return nil
	}
}
