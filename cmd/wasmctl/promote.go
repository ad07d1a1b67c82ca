// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

func newCmdPromote(s streams) *cobra.Command {
	return endsCanary(s, (*admin.Client).Promote, &cobra.Command{
		Use:   "promote CONTROLLER",
		Short: "Promote a canary to all objects",
		Long: `Gives a canary all objects before its time. Objects that are new to it are reconciled, at low priority, as set by
"wasmctl run --reconcile-on-swap". Its probation follows.`,
		Example: `  wasmctl promote configmapgenerator`,
	})
}

func newCmdAbort(s streams) *cobra.Command {
	return endsCanary(s, (*admin.Client).Abort, &cobra.Command{
		Use:   "abort CONTROLLER",
		Short: "Abort a canary",
		Long: `Ends a canary: the live module gets all objects back and reconciles those that the canary had. Running reconciles of the canary can
finish within --drain-timeout.`,
		Example: `  wasmctl abort configmapgenerator`,
	})
}

// endsCanary completes a command that ends the canary of a controller.
func endsCanary(s streams, end func(*admin.Client, context.Context, string) (admin.Swapped, error), cmd *cobra.Command) *cobra.Command {
	o := &steerOptions{streams: s}
	o.bind(cmd)
	cmd.Args = exactArgs("CONTROLLER")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return o.swap(cmd.Context(), args[0], false, func(ctx context.Context, c *admin.Client) (admin.Swapped, error) {
			return end(c, ctx, args[0])
		})
	}
	return cmd
}
