// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
)

const topHelp = `Shows the busiest controllers and objects of a running process, as averages of about the last minute, busiest first. On a terminal,
the output refreshes until Ctrl-C.

  BUSY        time in runs, including waits for the API server; 100% is one worker all the time
  GUEST       CPU of the module; 100% is one core
  HOST        CPU of wasmctl in the runs of the controller; 100% is one core
  REQUESTS/S  requests of the runs to the API server
  FUEL/S      metered work of the module
  DECODED/S   bytes of objects that wasmctl decoded for the controller: answers, and its part of the watches
  MEMORY      linear memory of the instances, and memory of the host for the operations of the module

GUEST and HOST are by the clock, without waits, so they are too high while the CPUs are overloaded. Controllers share watches: a
watch counts in equal parts for each of them.

No controller has the CPU of watches, queues, events and garbage collection, nor the memory of the cache, compiled code and Go's
heap. The metrics of the process have the totals: process_cpu_seconds_total and process_resident_memory_bytes.

Only objects in the history are listed: see --history of "wasmctl run".`

func newCmdTop(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var output string
	var once bool
	var every time.Duration
	var objects int
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the busiest controllers and objects of a running process",
		Long:  topHelp,
		Example: `  wasmctl top
  wasmctl top --once --objects 50
  wasmctl top -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < minRefresh {
				return usageError(cmd, fmt.Errorf("--interval %v: want at least %v", every, minRefresh))
			}
			f, err := o.reach(cmd.Context())
			if err != nil {
				return err
			}
			m, err := f.only()
			if err != nil {
				return err
			}
			c := m.client
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
