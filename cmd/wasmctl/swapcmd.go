package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// pollEvery is how often --wait looks.
const pollEvery = 200 * time.Millisecond

func newCmdSwap(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var wait, force bool
	cmd := &cobra.Command{
		Use:   "swap CONTROLLER MODULE",
		Short: "Replace the module of a running controller",
		Long: `Replaces the module of a running controller by another. The new one is loaded, checked and configured, and watches that only it
needs sync, before anything changes; one that cannot be used is refused, and the old one goes on. Queue, timers and caches stay.
For the time of --probation it must do no worse than the one before, which else takes over again by itself.

It lasts until the process ends: a restart runs what its module's file has then.`,
		Example: `  wasmctl swap configmapgenerator new.wasm
  wasmctl swap configmapgenerator new.wasm --wait     # until its probation has ended; fails if it was taken back`,
		Args: exactArgs("CONTROLLER", "MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wasm, err := readModule(args[1])
			if err != nil {
				return err
			}
			return o.swap(cmd.Context(), args[0], wait, func(ctx context.Context, c *admin.Client) (admin.Swapped, error) {
				return c.Swap(ctx, args[0], wasm, force)
			})
		},
	}
	o.bind(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the end of its probation")
	cmd.Flags().BoolVar(&force, "force", false, "try a module again that was taken back")
	return cmd
}

func newCmdRollback(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var to uint64
	cmd := &cobra.Command{
		Use:   "rollback CONTROLLER",
		Short: "Give a running controller an earlier module again",
		Long: `Gives a running controller the module that it had before, or that of the generation that --to names: "wasmctl status" shows
which are kept. They are kept compiled for some minutes. The module becomes a new generation, without probation.`,
		Example: `  wasmctl rollback configmapgenerator
  wasmctl rollback configmapgenerator --to 3`,
		Args: exactArgs("CONTROLLER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.swap(cmd.Context(), args[0], false, func(ctx context.Context, c *admin.Client) (admin.Swapped, error) {
				return c.Rollback(ctx, args[0], to)
			})
		},
	}
	o.bind(cmd)
	cmd.Flags().Uint64Var(&to, "to", 0, "generation to go back to (default: the one before)")
	return cmd
}

// swap asks for a swap and says what came of it.
func (o *steerOptions) swap(ctx context.Context, controller string, wait bool, ask func(context.Context, *admin.Client) (admin.Swapped, error)) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	res, err := ask(ctx, c)
	if errors.Is(err, admin.ErrRefused) {
		return withCode(exitModule, err)
	}
	if err != nil {
		return steerError(ctx, c, err)
	}
	what := fmt.Sprintf("generation %d is live", res.Generation)
	if res.Unchanged {
		what = fmt.Sprintf("unchanged: generation %d has this module", res.Generation)
	}
	if _, err := fmt.Fprintln(o.streams.out, what); err != nil || !wait {
		return err
	}
	if err := awaitProbation(ctx, c, controller, res.Generation); err != nil {
		return withCode(exitModule, err)
	}
	_, err = fmt.Fprintln(o.streams.out, "probation passed")
	return err
}

// awaitProbation waits until a generation is no longer on probation; the error
// says why it did not pass.
func awaitProbation(ctx context.Context, c *admin.Client, controller string, number uint64) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		st, err := c.Status(ctx)
		if err != nil {
			return err
		}
		g := findGeneration(&st, controller, number)
		switch {
		case g == nil:
			return fmt.Errorf("generation %d: was replaced, and is not known any more", number)
		case g.State == "live":
			return nil
		case g.State == "failed":
			return fmt.Errorf("generation %d: was taken back: %s", number, g.Reason)
		case g.State != "probation":
			return fmt.Errorf("generation %d: was replaced before its probation ended: it is %s", number, g.State)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func findGeneration(st *admin.Status, controller string, number uint64) *admin.Generation {
	for i := range st.Controllers {
		c := &st.Controllers[i]
		if c.Name != controller {
			continue
		}
		if j := slices.IndexFunc(c.Generations, func(g admin.Generation) bool { return g.Number == number }); j >= 0 {
			return &c.Generations[j]
		}
	}
	return nil
}

func newCmdConfig(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Change the settings of a running controller's module",
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCmdConfigSet(s))
	return cmd
}

func newCmdConfigSet(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "set CONTROLLER KEY=VALUE|KEY-...",
		Short: "Set or unset settings",
		Long: `Sets settings over those of --config and --config-file, or, with KEY-, leaves one to the module's manifest. The module may refuse
them: then the old ones stay. All objects are reconciled with the new ones, at low priority. It lasts until the process ends.`,
		Example: `  wasmctl config set configmapgenerator prefix=blue
  wasmctl config set configmapgenerator prefix-`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := parseChange(args[1:])
			if err != nil {
				return usageError(cmd, err)
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			gen, err := c.Configure(cmd.Context(), args[0], change)
			if err != nil {
				return steerError(cmd.Context(), c, err)
			}
			_, err = fmt.Fprintf(s.out, "settings %d are in force\n", gen)
			return err
		},
	}
	o.bind(cmd)
	return cmd
}

// parseChange reads KEY=VALUE and KEY-.
func parseChange(args []string) (map[string]*string, error) {
	change := map[string]*string{}
	for _, arg := range args {
		key, value, set := strings.Cut(arg, "=")
		if unset, ok := strings.CutSuffix(arg, "-"); !set && ok {
			key = unset
		} else if !set {
			return nil, fmt.Errorf("setting %q: want KEY=VALUE, or KEY- to unset it", arg)
		}
		if key == "" {
			return nil, fmt.Errorf("setting %q: the key is missing", arg)
		}
		if _, twice := change[key]; twice {
			return nil, fmt.Errorf("setting %q: is named twice", key)
		}
		change[key] = nil
		if set {
			change[key] = &value
		}
	}
	return change, nil
}
