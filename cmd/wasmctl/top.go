package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
)

func newCmdTop(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var output string
	var once bool
	var every time.Duration
	var objects int
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the busiest controllers and objects of a running process",
		Long: `Shows the busiest controllers and objects of a running process, as averages of about the last minute, busiest first. BUSY is the
share of time spent in runs, including waits for the API server; 100% is one worker all the time. FUEL is the metered work of the
modules. On a terminal, the output refreshes until Ctrl-C.

Only objects in the history are listed: see --history of "wasmctl run".`,
		Example: `  wasmctl top
  wasmctl top --once --objects 50
  wasmctl top -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < minRefresh {
				return usageError(cmd, fmt.Errorf("--interval %v: want at least %v", every, minRefresh))
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			if output == "text" && !once && printer.ScreenOf(s.out).Height > 0 {
				ctx, stop := followContext(cmd.Context())
				defer stop()
				return printer.Refresh(ctx, s.out, every, func(ctx context.Context, screen printer.Screen) ([]string, error) {
					top, err := c.Top(ctx, objects)
					return printer.TopLines(&top, screen), err
				})
			}
			top, err := c.Top(cmd.Context(), objects)
			if err != nil {
				return err
			}
			if output == "text" {
				screen := printer.ScreenOf(s.out)
				return screen.Write(printer.TopLines(&top, screen))
			}
			return printer.Output(s.out, output, &top, nil)
		},
	}
	o.bind(cmd)
	outputFlag(cmd, &output, "text", "json", "yaml")
	cmd.Flags().BoolVar(&once, "once", false, "Show it once, even on a terminal")
	cmd.Flags().IntVar(&objects, "objects", 20, "Show this many objects")
	cmd.Flags().DurationVar(&every, "interval", 2*time.Second, "Refresh at this interval")
	return cmd
}
