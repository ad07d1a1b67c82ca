// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/compiler"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/guestprocess"
	"github.com/wasmctl/wasmctl/internal/failure"
)

// newCmdCompile returns the command of the compiler process. Users do not call it.
func newCmdCompile(s streams) *cobra.Command {
	return &cobra.Command{
		Use:    compiler.Command,
		Short:  "Compile a module for wasmctl run",
		Hidden: true,
		Args:   exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failure.Usage.Wrap(compiler.Serve(cmd.Context(), s.in, s.out))
		},
	}
}

// newCmdGuests returns the command of the process that runs the guests of run --isolate. Users do
// not call it.
func newCmdGuests(s streams) *cobra.Command {
	return &cobra.Command{
		Use:    guestprocess.Command,
		Short:  "Run the modules of wasmctl run --isolate",
		Hidden: true,
		Args:   exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			return failure.Usage.Wrap(guestprocess.Serve(s.in))
		},
	}
}
