// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// pollEvery is the interval at which --wait asks for the status.
const pollEvery = 200 * time.Millisecond

func newCmdSwap(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var wait, force bool
	var try v1alpha1.ControllerSpec
	registry := flags.Registry{Progress: s.progress}
	cmd := &cobra.Command{
		Use:   "swap CONTROLLER MODULE",
		Short: "Replace the module of a running controller",
		Long: `Replaces the module of a running controller. Before anything changes, the new module is loaded, checked and configured, and the
watches that only it needs sync. If that fails, the new module is refused and the old one keeps running. Queue, timers and caches
stay. During --probation, wasmctl compares the new module with the old one and rolls back if the new one does worse.

With --canary, --canary-namespace or --canary-selector, the new module first runs as a canary on the objects that all of these
flags match. It gets the other objects after --canary-time or with "wasmctl promote". If it does worse than the live module
meanwhile, or with "wasmctl abort", the live module takes all objects back.

The swap lasts until the process ends: after a restart, the process runs the module in the file.

If replicas share the objects of the controller (--shards), the command reaches all of them with --in, one after the other. It ends at
the first one that refuses the module or, with --wait, rolls it back. Without --in, it names the replicas that keep their module. The
same holds for "wasmctl rollback", "promote" and "abort".`,
		Example: `  wasmctl swap configmapgenerator new.wasm
  wasmctl swap configmapgenerator new.wasm --wait     # wait for the probation; fails if it was rolled back
  wasmctl swap configmapgenerator new.wasm --canary 10%`,
		Args: exactArgs("CONTROLLER", "MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m := registry.Open(args[1])
			wasm, err := registry.Read(cmd.Context(), m)
			if err != nil {
				return err
			}
			options := admin.SwapOptions{Force: force, Proof: flags.Proof(m), From: m.String()}
			if err := flags.Validate(&try); err != nil {
				return usageError(cmd, err)
			}
			options.Canary = canaryOf(cmd, try.Rollout)
			return o.swap(cmd.Context(), args[0], wait, func(ctx context.Context, c *admin.Client) (admin.Swapped, error) {
				return c.Swap(ctx, args[0], wasm, options)
			})
		},
	}
	o.bind(cmd)
	registry.Bind(cmd.Flags())
	registry.BindVerify(cmd.Flags())
	flags.Bind(cmd, &try, "canary", "canary-namespace", "canary-selector", "canary-time")
	cmd.Flags().Lookup("canary").Usage += `; "off" turns it off (default: as set for the controller)`
	cmd.Flags().BoolVar(&wait, "wait", false, "Wait until canary and probation have ended")
	cmd.Flags().BoolVar(&force, "force", false, "Swap in the module even if it was rolled back before")
	return cmd
}

// canaryOf returns the canary of the flags, or nil if they leave it to the controller.
func canaryOf(cmd *cobra.Command, r *v1alpha1.Rollout) *admin.Canary {
	if r == nil {
		return nil
	}
	c := &admin.Canary{Namespaces: r.Canary.Namespaces, Selector: r.Canary.Selector.String()}
	if cmd.Flags().Changed("canary-time") {
		c.Time = new(r.Canary.Time.Or(v1alpha1.DefaultCanaryTime))
	}
	switch {
	case r.Canary.Percent > 0:
		c.Share = fmt.Sprint(r.Canary.Percent) + "%"
	case cmd.Flags().Changed("canary"):
		c.Share = v1alpha1.CanaryOff
	}
	return c
}

// moduleChange requests a change of a module.
type moduleChange func(context.Context, *admin.Client) (admin.Swapped, error)

// swap requests a change of the module at each process that runs a controller, and prints the results.
func (o *steerOptions) swap(ctx context.Context, controller string, wait bool, change moduleChange) error {
	f, err := o.reach(ctx)
	if err != nil {
		return err
	}
	members, err := f.each(ctx, controller)
	if err != nil {
		return err
	}
	return o.swapEach(ctx, members, controller, wait, change)
}

// swapEach changes the module at one member after the other. After an error, the others are not asked: they would refuse the module, too.
func (o *steerOptions) swapEach(ctx context.Context, f fleet, controller string, wait bool, change moduleChange) error {
	for i := range f {
		prefix := ""
		if len(f) > 1 {
			prefix = f[i].name + ": "
		}
		if err := o.swapAt(ctx, &f[i], controller, prefix, wait, change); err != nil {
			err = f[i:i+1].failed(ctx, controller, err)
			if left := f[i+1:]; len(left) > 0 {
				return fmt.Errorf("%s%w; not asked: %s", prefix, err, strings.Join(left.pods(), ", "))
			}
			return err
		}
	}
	if ids := f.differing(ctx, controller); len(ids) > 0 {
		_, err := fmt.Fprintf(o.streams.out, "unchanged at other replicas: %s; --in NAMESPACE reaches all\n", text.Line(strings.Join(ids, ", ")))
		return err
	}
	return nil
}

// swapAt changes the module at one member, and prints the result.
func (o *steerOptions) swapAt(ctx context.Context, m *member, controller, prefix string, wait bool, change moduleChange) error {
	task := o.streams.progress.Wait(prefix + "waiting until the module has been loaded and checked, and its watches have synced")
	res, err := change(ctx, m.client)
	task.End()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("revision %d is live", res.Revision)
	switch {
	case res.Unchanged:
		what = fmt.Sprintf("unchanged: revision %d already has this module", res.Revision)
	case res.Canary:
		what = fmt.Sprintf("revision %d is running as a canary: use wasmctl promote %[2]s or wasmctl abort %[2]s", res.Revision, controller)
	}
	if wait {
		what += "; waiting for the end of its probation, which begins with its first run: see wasmctl status"
	}
	if _, err := fmt.Fprintln(o.streams.out, prefix+what); err != nil || !wait {
		return err
	}
	if err := o.awaitProbation(ctx, m.client, controller, res.Revision); err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.streams.out, prefix+"probation passed")
	return err
}

// awaitProbation waits until the probation of a revision has ended, and reports what it waits for.
// It returns an error with the reason if the revision did not pass.
func (o *steerOptions) awaitProbation(ctx context.Context, c *admin.Client, controller string, number uint64) error {
	return o.streams.progress.Await(ctx, pollEvery, func(ctx context.Context) (stage, what string, err error) {
		st, err := c.Status(ctx)
		if err != nil {
			return "", "", err
		}
		r := findRevision(&st, controller, number)
		switch {
		case r == nil:
			err = fmt.Errorf("revision %d: was replaced and is no longer known", number)
		case r.State == "live":
		case r.State == "failed":
			err = fmt.Errorf("revision %d: was rolled back: %s", number, r.Reason)
		case r.State == string(life.CanaryAborted) || r.State == string(life.CanaryReplaced):
			err = fmt.Errorf("revision %d: canary %s: %s", number, r.State, r.Reason)
		case r.State != "probation" && r.State != "canary":
			err = fmt.Errorf("revision %d: was replaced before its probation ended: it is %s", number, r.State)
		default:
			stage, what = r.State, waitingFor(r)
		}
		return stage, what, failure.Module.Wrap(err)
	})
}

// waitingFor describes the stage that a revision is in.
func waitingFor(r *admin.Revision) string {
	stage := fmt.Sprintf("%s of revision %d", r.State, r.Number)
	if r.Canary != "" {
		stage = r.Canary
	}
	text := fmt.Sprintf("waiting for the end of the %s: %s, %d failed", stage, humanize.Plural(int(min(r.Runs, math.MaxInt32)), "run"), r.Errors)
	if r.Runs == 0 {
		text += "; it begins with the first run"
	}
	return text
}

func findRevision(st *admin.Status, controller string, number uint64) *admin.Revision {
	for i := range st.Controllers {
		c := &st.Controllers[i]
		if c.Name != controller {
			continue
		}
		if j := slices.IndexFunc(c.Revisions, func(r admin.Revision) bool { return r.Number == number }); j >= 0 {
			return &c.Revisions[j]
		}
	}
	return nil
}
