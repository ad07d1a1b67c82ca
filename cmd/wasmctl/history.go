// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// historyOptions are the flags of history.
type historyOptions struct {
	steerOptions
	servedOptions

	output string
}

func newCmdHistory(s streams) *cobra.Command {
	o := &historyOptions{steerOptions: steerOptions{streams: s}}
	cmd := &cobra.Command{
		Use:   "history [CONTROLLER | reconciler/NAME]",
		Short: "Show the changes of a controller's module",
		Long: `Shows the last 20 changes of the module of a running controller, the latest one first: when, which revision, the result, the module,
and why: which command by which user, a changed file, a moved tag, a changed Reconciler, or the reason of a rollback or a refusal.
With --state-dir, the process still knows them after a restart.

For a Reconciler, the command shows the modules that were live, from the status of the object in the cluster.`,
		Example: `  wasmctl history configmapgenerator
  wasmctl history reconciler/site -n t01
  wasmctl history configmapgenerator -o json | jq '.items[0]'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := o.changes(cmd, args)
			if err != nil {
				return err
			}
			slices.Reverse(list)
			if o.output == "text" {
				screen := printer.ScreenOf(s.out)
				return screen.Write(printer.HistoryLines(list, time.Now(), screen))
			}
			return printer.Output(s.out, o.output, items[admin.Change]{list}, nil)
		},
	}
	o.steerOptions.bind(cmd)
	o.servedOptions.bind(cmd)
	outputFlag(cmd, &o.output, "text", "json", "yaml")
	return cmd
}

// changes returns the changes of a controller or of a Reconciler, the oldest first.
func (o *historyOptions) changes(cmd *cobra.Command, args []string) ([]admin.Change, error) {
	if list, ok := parseServed(args); ok {
		if len(list) != 1 {
			return nil, usageError(cmd, errors.New("want exactly one Reconciler"))
		}
		o.servedOptions.kubeconfig = o.steerOptions.kubeconfig
		r, err := o.open(list[0])
		if err != nil {
			return nil, err
		}
		object, err := r.get(cmd.Context())
		if err != nil {
			return nil, err
		}
		return changesOf(&object.Status), nil
	}
	if err := maxArgs(1)(cmd, args); err != nil {
		return nil, err
	}
	return o.ofProcess(cmd.Context(), args)
}

// ofProcess returns the changes of a controller of the running process.
func (o *historyOptions) ofProcess(ctx context.Context, args []string) ([]admin.Change, error) {
	f, err := o.reach(ctx)
	if err != nil {
		return nil, err
	}
	name, rest, err := (&target{}).splitController(args, f.names())
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, f.failed(ctx, rest[0], fmt.Errorf("controller[%s]: %w", rest[0], admin.ErrUnknown))
	}
	c, err := f.of(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	list, err := c.History(ctx, name)
	return list, f.failed(ctx, name, err)
}

// changesOf returns the changes that a status has, the oldest first.
func changesOf(st *v1alpha1.Status) (list []admin.Change) {
	for _, p := range slices.Backward(st.History) {
		result := "replaced"
		if p.Reason == "RolledBack" {
			result = "rolled_back"
		}
		list = append(list, admin.Change{Time: p.From.Time, Digest: p.Digest, Module: p.Version, Result: result, Why: "live until " + p.To.UTC().Format(time.RFC3339)})
	}
	if l := st.Live; l != nil {
		change := admin.Change{Time: l.Since.Time, Digest: l.Digest, Module: l.Version, Result: "live"}
		if l.Generation > 0 {
			change.Why = fmt.Sprintf("generation %d of the Reconciler", l.Generation)
		}
		list = append(list, change)
	}
	if r := st.Refused; r != nil {
		list = append(list, admin.Change{Time: r.At.Time, Digest: r.Digest, Result: "refused", Why: r.Reason + ": " + r.Message})
	}
	slices.SortStableFunc(list, func(a, b admin.Change) int { return a.Time.Compare(b.Time) })
	return list
}
