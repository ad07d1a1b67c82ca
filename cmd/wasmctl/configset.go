// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newCmdConfigSet(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "set CONTROLLER KEY=VALUE|KEY-...",
		Short: "Set or unset settings",
		Long: `Sets settings of the module until the process ends. They take precedence over --config and --config-file. KEY- resets a setting to
the default in the manifest. Settings that the manifest does not declare are an error. If the module refuses the new settings, the
old ones stay in effect. Otherwise all objects are reconciled, at low priority.`,
		Example: `  wasmctl config set configmapgenerator prefix=blue
  wasmctl config set configmapgenerator prefix-`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError(cmd, errors.New("want CONTROLLER and KEY=VALUE, or KEY- to unset it"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := parseChange(args[1:])
			if err != nil {
				return usageError(cmd, err)
			}
			f, c, err := o.clientFor(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			number, err := c.Configure(cmd.Context(), args[0], change)
			if err != nil {
				return f.failed(cmd.Context(), args[0], err)
			}
			_, err = fmt.Fprintf(s.out, "settings applied (change %d)\n", number)
			return err
		},
	}
	o.bind(cmd)
	return cmd
}

// parseChange parses KEY=VALUE and KEY- arguments. A key to unset has the value nil.
func parseChange(args []string) (map[string]*string, error) {
	change := map[string]*string{}
	for _, arg := range args {
		key, value, set := strings.Cut(arg, "=")
		if unset, ok := strings.CutSuffix(arg, "-"); !set && ok {
			key = unset
		} else if !set {
			return nil, fmt.Errorf("setting %q: want KEY=VALUE, or KEY- to unset it", arg)
		}
		if key == "" {
			return nil, fmt.Errorf("setting %q: the key is missing", arg)
		}
		if _, twice := change[key]; twice {
			return nil, fmt.Errorf("setting %q: is set twice", key)
		}
		change[key] = nil
		if set {
			change[key] = &value
		}
	}
	return change, nil
}
