// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/internal/text"
)

func newCmdLogLevel(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "log-level CONTROLLER [LEVEL]",
		Short: "Show or set the log level of a running controller",
		Long: `Shows the log level of a running controller, or sets it until the process ends: debug, info, warn or error. The level applies to
the lines of the host and of the module. Other controllers keep their level.`,
		Example: `  wasmctl log-level webapp debug`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return usageError(cmd, errors.New("want CONTROLLER [LEVEL]"))
			}
			level := ""
			if len(args) == 2 {
				if level = strings.ToLower(args[1]); !slices.Contains(logging.Levels, level) {
					return usageError(cmd, fmt.Errorf("level %q: want one of %s", args[1], strings.Join(logging.Levels, ", ")))
				}
			}
			f, c, err := o.clientFor(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			level, err = c.LogLevel(cmd.Context(), args[0], level)
			if err != nil {
				return f.failed(cmd.Context(), args[0], err)
			}
			_, err = fmt.Fprintln(s.out, text.Line(level))
			return err
		},
	}
	o.bind(cmd)
	return cmd
}
