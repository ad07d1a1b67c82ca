package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

func newCmdStatus(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var output string
	var watch bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the controllers of a running process",
		Long: `Shows the controllers of a running process, and the watches and generations of each; where there are many, only those that
are out of the ordinary. -o json has all.

READY objects are due, the next of them for OLDEST, WAITING ones wait for a time (a requeue, a retry, the debounce), RUNNING is how
many workers are busy of those there are. RUNS and FAILED count since the start, FAILING and QUARantined are objects, DENIED counts
what the module asked for and may not do. A watch is FOR so long in its STATE: syncing, ready, denied, absent or failing; the API
server last told it something PROGRESS ago. "wasmctl explain" says more of one object.

With --watch it is shown until ctrl-C, what is wrong first.`,
		Example: `  wasmctl status
  wasmctl status --watch
  wasmctl status -o json | jq '.controllers[].watches'`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !slices.Contains(outputFormats, output):
				return usageError(cmd, fmt.Errorf("--output %q: want one of %s", output, strings.Join(outputFormats, ", ")))
			case watch && output != "text":
				return usageError(cmd, fmt.Errorf("--watch shows text: leave --output %s out", output))
			case every < minRefresh:
				return usageError(cmd, fmt.Errorf("--interval %v: want at least %v", every, minRefresh))
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			if watch {
				ctx, stop := followContext(cmd.Context())
				defer stop()
				return refresh(ctx, s.out, every, func(ctx context.Context, screen screen) ([]string, error) {
					st, err := c.Status(ctx)
					return statusLines(&st, time.Now(), screen, true), err
				})
			}
			st, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			return writeOutput(s.out, output, &st, func() []byte { return statusText(&st, screenOf(s.out)) })
		},
	}
	o.bind(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", strings.Join(outputFormats, ", "))
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on showing it")
	cmd.Flags().DurationVar(&every, "interval", 2*time.Second, "how often --watch shows it")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// minRefresh is the shortest interval of what is shown again and again.
const minRefresh = 100 * time.Millisecond

func statusText(st *admin.Status, s screen) []byte {
	return []byte(strings.Join(statusLines(st, time.Now(), s, false), "\n") + "\n")
}
