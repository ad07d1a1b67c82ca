package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

func newCmdTrigger(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var all bool
	cmd := &cobra.Command{
		Use:   "trigger CONTROLLER [NAMESPACE/]NAME...",
		Short: "Make a running controller reconcile objects",
		Long: `Makes a running controller reconcile objects now, as if they had changed. With --all it reconciles all objects, at low priority,
after those that have changed.`,
		Example: `  wasmctl trigger configmapgenerator default/hello
  wasmctl trigger configmapgenerator --all`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError(cmd, errors.New("CONTROLLER is missing"))
			}
			keys, err := parseKeys(args[1:])
			switch {
			case err != nil:
				return usageError(cmd, err)
			case all == (len(keys) > 0):
				return usageError(cmd, errors.New("want the names of objects, or --all"))
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			n, err := c.Trigger(cmd.Context(), args[0], keys)
			if err != nil {
				return steerError(cmd.Context(), c, err)
			}
			_, err = fmt.Fprintf(s.out, "triggered %s\n", humanize.Plural(n, "object"))
			return err
		},
	}
	o.bind(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "Reconcile all objects of the controller")
	return cmd
}

// parseKeys reads the names of objects.
func parseKeys(names []string) ([]abi.Key, error) {
	keys := make([]abi.Key, len(names))
	for i, name := range names {
		ns, rest, ok := strings.Cut(name, "/")
		if !ok {
			ns, rest = "", name
		}
		if rest == "" || ok && ns == "" || strings.Contains(rest, "/") {
			return nil, fmt.Errorf("object %q: want NAMESPACE/NAME, or NAME for a cluster-scoped kind", name)
		}
		keys[i] = abi.Key{Namespace: ns, Name: rest}
	}
	return keys, nil
}
