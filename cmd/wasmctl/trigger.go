// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/internal/humanize"
)

// errWantObjects is the error for a trigger that names no objects, or both objects and --all.
var errWantObjects = errors.New("want the names of objects, or --all")

func newCmdTrigger(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var t target
	var all, force bool
	cmd := &cobra.Command{
		Use:   "trigger [CONTROLLER] [NAMESPACE/]NAME...",
		Short: "Make a running controller reconcile objects",
		Long: `Makes a running controller reconcile objects now, as if they had changed. With --all it reconciles all objects, at low priority,
after those that have changed, and at all replicas that share them (--shards). The runs send all that they declare, even if nothing seems to have changed. With wasmctl run --memo, a run that would read the same as the last run is skipped, unless you set
--force. CONTROLLER can be omitted if the process has only one.`,
		Example: `  wasmctl trigger configmapgenerator default/hello
  wasmctl trigger hello -n default
  wasmctl trigger configmapgenerator --all --force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !all {
				return usageError(cmd, errWantObjects)
			}
			f, controller, keys, err := t.of(cmd.Context(), o, args)
			switch {
			case err != nil:
				return err
			case all == (len(keys) > 0):
				return usageError(cmd, errWantObjects)
			}
			c, err := f.steered(cmd.Context(), controller, keys)
			if err != nil {
				return err
			}
			res, err := c.Trigger(cmd.Context(), controller, keys, force)
			if err != nil {
				return f.failed(cmd.Context(), controller, err)
			}
			what := humanize.Plural(res.Triggered, "object")
			if res.Replicas > 0 {
				what = "all objects, at " + humanize.Plural(res.Replicas, "replica")
			}
			_, err = fmt.Fprintf(s.out, "triggered %s\n", what)
			return err
		},
	}
	o.bind(cmd)
	t.bind(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "Reconcile even if nothing that the last run read has changed")
	cmd.Flags().BoolVar(&all, "all", false, "Reconcile all objects of the controller")
	return cmd
}
