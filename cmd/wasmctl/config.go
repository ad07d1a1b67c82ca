// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
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

func newCmdConfigSchema(s streams) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of controllers files",
		Example: "  wasmctl config schema > controllers.schema.json",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			_, err := s.out.Write(runfile.Schema(flags.Format()))
			return err
		},
	}
}
