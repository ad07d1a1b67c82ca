package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// pollEvery is how often --wait looks.
const pollEvery = 200 * time.Millisecond

func newCmdSwap(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var wait, force bool
	var try canaryOptions
	cmd := &cobra.Command{
		Use:   "swap CONTROLLER MODULE",
		Short: "Replace the module of a running controller",
		Long: `Replaces the module of a running controller by another. The new one is loaded, checked and configured, and watches that only it
needs sync, before anything changes; one that cannot be used is refused, and the old one goes on. Queue, timers and caches stay.
For the time of --probation it must do no worse than the one before, which else takes over again by itself.

With --canary, --canary-namespace or --canary-selector it gets the objects that all of them match, and the others after --canary-time,
or with "wasmctl promote". It loses them if it does worse than the live one meanwhile, or with "wasmctl abort".

It lasts until the process ends: a restart runs what its module's file has then.`,
		Example: `  wasmctl swap configmapgenerator new.wasm
  wasmctl swap configmapgenerator new.wasm --wait     # until its probation has ended; fails if it was taken back
  wasmctl swap configmapgenerator new.wasm --canary 10%`,
		Args: exactArgs("CONTROLLER", "MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wasm, err := readModule(args[1])
			if err != nil {
				return err
			}
			how := admin.SwapHow{Force: force}
			if _, err := try.parse(); err != nil {
				return usageError(cmd, err)
			}
			if try.given(cmd.Flags()) {
				how.Canary = &admin.Canary{Share: try.share, Namespaces: try.namespaces, Selector: try.selector, Time: try.time}
			}
			return o.swap(cmd.Context(), args[0], wait, func(ctx context.Context, c *admin.Client) (admin.Swapped, error) {
				return c.Swap(ctx, args[0], wasm, how)
			})
		},
	}
	o.bind(cmd)
	try.bind(cmd.Flags(), defaultCanaryTime)
	cmd.Flags().Lookup("canary").Usage += `, "off" for none (default: what wasmctl run was told)`
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the end of its canary and of its probation")
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

func newCmdPromote(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "promote CONTROLLER",
		Short: "Give a canary all objects",
		Long: `Gives a module that is tried on some of the objects all of them, before its time. Those that it did not have are reconciled, at
low priority, as "wasmctl run --reconcile-on-swap" says. Its probation follows.`,
		Example: `  wasmctl promote configmapgenerator`,
		Args:    exactArgs("CONTROLLER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.swap(cmd.Context(), args[0], false, func(ctx context.Context, c *admin.Client) (admin.Swapped, error) {
				return c.Promote(ctx, args[0])
			})
		},
	}
	o.bind(cmd)
	return cmd
}

func newCmdAbort(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "abort CONTROLLER",
		Short: "Take a canary's objects away from it",
		Long: `Ends the try of a module on some of the objects: the module that is live has all of them again, and reconciles those that the other
had. Runs of the other that have begun may finish within --drain-timeout.`,
		Example: `  wasmctl abort configmapgenerator`,
		Args:    exactArgs("CONTROLLER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.swap(cmd.Context(), args[0], false, func(ctx context.Context, c *admin.Client) (admin.Swapped, error) {
				return c.Abort(ctx, args[0])
			})
		},
	}
	o.bind(cmd)
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
	switch {
	case res.Unchanged:
		what = fmt.Sprintf("unchanged: generation %d has this module", res.Generation)
	case res.Canary:
		what = fmt.Sprintf("generation %d is tried on some of the objects: wasmctl promote %[2]s, or wasmctl abort %[2]s", res.Generation, controller)
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
		case g.State == canaryAborted || g.State == canaryReplaced:
			return fmt.Errorf("generation %d: its canary was %s: %s", number, g.State, g.Reason)
		case g.State != "probation" && g.State != "canary":
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
