// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
)

func newCmdGrant(s streams) *cobra.Command {
	var process flags.Process
	var controller v1alpha1.ControllerSpec
	cmd := &cobra.Command{
		Use:   "grant MODULE",
		Short: "Print the grant that lets a module run",
		Long: `Prints a grant with all that a module requests: its watches, its finalizer, the objects that it reconciles, and the capabilities of
its manifest. Read it, remove what the module should not do, and run the module with --grant. A module with several controllers gets a
document for each set of controllers that have the same rules.

The command looks up the plurals of kinds in the cluster. If no cluster is configured or it does not know a kind yet, it guesses the
plural and prints a note.`,
		Example: `  wasmctl grant module.wasm > grant.yaml
  wasmctl run module.wasm --grant grant.yaml
  wasmctl grant module.wasm -n shop`,
		Args: exactArgs("MODULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			controller.Module.Set(args[0])
			all, err := controllersOf(cmd.Context(), &process.Registry, &controller)
			if err != nil {
				return err
			}
			guess := newGuess(&process)
			var documents []grant.Document
			for _, c := range all {
				l, name, err := least(cmd.Context(), guess, &process.Registry, c)
				if err != nil {
					return err
				}
				documents = append(documents, grant.Document{Controllers: []string{name}, Capabilities: l.Grant, Finalizers: l.Finalizers})
			}
			tellGuessed(s, guess)
			var texts [][]byte
			for _, d := range grant.Merge(documents) {
				text, err := d.Marshal()
				if err != nil {
					return err
				}
				texts = append(texts, text)
			}
			_, err = s.out.Write(bytes.Join(texts, []byte("---\n")))
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	flags.Bind(cmd, &controller, "for", "namespace", "name", "controller")
	process.Kubeconfig.Bind(cmd, "Use this kubeconfig `file` (default: as wasmctl run)")
	process.Registry.Bind(f)
	process.Registry.BindVerify(f)
	return cmd
}
