// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

func newCmdRollback(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var to uint64
	cmd := &cobra.Command{
		Use:   "rollback CONTROLLER",
		Short: "Roll back a running controller to an earlier module",
		Long: `Rolls back a running controller to the previous module, or to the revision that --to-revision names. Earlier revisions are kept
compiled for some minutes: "wasmctl status" lists them. The module becomes a new revision without probation.`,
		Example: `  wasmctl rollback configmapgenerator
  wasmctl rollback configmapgenerator --to-revision 3`,
		Args: exactArgs("CONTROLLER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := o.reach(cmd.Context())
			if err != nil {
				return err
			}
			members, err := f.each(cmd.Context(), args[0])
			switch {
			case err != nil:
				return err
			case to != 0 && len(members) > 1:
				return usageError(cmd, members.choose("--to-revision: each replica counts its own revisions, and the controller runs on"))
			}
			return o.swapEach(cmd.Context(), members, args[0], false, func(ctx context.Context, c *admin.Client) (admin.Swapped, error) {
				return c.Rollback(ctx, args[0], to)
			})
		},
	}
	o.bind(cmd)
	cmd.Flags().Uint64Var(&to, "to-revision", 0, "Roll back to this `revision` (default: the previous one)")
	return cmd
}
