// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"
)

func newCmdConfig(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check a controllers file, or change settings of a running controller",
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCmdConfigCheck(s), newCmdConfigSchema(s), newCmdConfigSet(s))
	return cmd
}
