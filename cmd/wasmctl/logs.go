// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

func newCmdLogs(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	q := admin.LogQuery{}
	var since time.Duration
	var output string
	cmd := &cobra.Command{
		Use:   "logs [CONTROLLER]",
		Short: "Show the log of a running controller",
		Long: `Shows the last log lines of a controller, from the host and from its module. The process keeps the last 2,000 lines of each
controller, up to 512 KiB. Lines below the log level are not kept: see "wasmctl log-level".
CONTROLLER can be omitted if the process has only one.`,
		Example: `  wasmctl logs --follow
  wasmctl logs webapp --object shop/hello --since 10m
  wasmctl logs webapp -o json | jq 'select(.level == "WARN")'`,
		Args: maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if since > 0 {
				q.Since = time.Now().Add(-since)
			}
			f, err := o.reach(cmd.Context())
			if err != nil {
				return err
			}
			t := target{controller: strings.Join(args, "")}
			controller, _, err := t.splitController(nil, f.names())
			if err != nil {
				return err
			}
			c, err := f.of(cmd.Context(), controller, nil)
			if err != nil {
				return err
			}
			ctx, stop := followContext(cmd.Context())
			defer stop()
			err = c.Logs(ctx, controller, q, logging.LineWriter(s.out, output))
			if q.Follow && (ctx.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF)) {
				return nil // the user stopped the command, or the process ended
			}
			return f.failed(cmd.Context(), controller, err)
		},
	}
	o.bind(cmd)
	flags := cmd.Flags()
	flags.StringVar(&q.Object, "object", "", "Show only lines about this object: [NAMESPACE/]NAME")
	flags.BoolVarP(&q.Follow, "follow", "f", false, "Follow the log")
	flags.DurationVar(&since, "since", 0, "Show only lines newer than this, for example 10m (default: all kept lines)")
	flags.IntVar(&q.Tail, "tail", -1, "Show at most this many lines; -1 shows all")
	outputFlag(cmd, &output, logging.Formats...)
	return cmd
}
