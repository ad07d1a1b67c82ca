// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/pods"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// newCmdStdio returns the command that a wasmctl outside of the cluster runs in a pod: see the flag --in. It
// passes bytes on, so it uses the standard streams as they are.
func newCmdStdio() *cobra.Command {
	return &cobra.Command{
		Use:    pods.Command,
		Short:  "Connect the standard streams to the socket of the running process",
		Hidden: true,
		Args:   exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := admin.Find(cmd.Context())
			if err != nil {
				return failure.Usage.Wrap(err)
			}
			return admin.Pipe(cmd.Context(), path, os.Stdin, os.Stdout)
		},
	}
}
