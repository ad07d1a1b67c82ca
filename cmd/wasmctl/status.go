package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/printer"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

func newCmdStatus(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var output string
	var watch, all bool
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the controllers of a running process",
		Long: `Shows the controllers of a running process with their watches and module revisions. With many controllers, it shows only watches and
revisions that need attention; -o json shows all.

READY counts objects that are due, OLDEST is how long the next one has been due, WAITING counts objects that wait for a time (a
requeue, a retry, the debounce), RUNNING is busy workers of all workers. RUNS and FAILED count since the start. FAILING and
QUARantined count objects, DENIED counts refused requests of the module. A watch has been in its STATE (syncing, ready, denied,
absent or failing) FOR this long, and PROGRESS is the time since the API server last sent something. For one object, use
"wasmctl explain".

With --all, the output has every process of this user on this machine, each with its socket.

With --watch, the output refreshes until Ctrl-C, problems first.`,
		Example: `  wasmctl status
  wasmctl status --watch
  wasmctl status --all
  wasmctl status -o json | jq '.controllers[].watches'`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case watch && output != "text":
				return usageError(cmd, fmt.Errorf("--watch prints text: omit --output %s", output))
			case every < minRefresh:
				return usageError(cmd, fmt.Errorf("--interval %v: want at least %v", every, minRefresh))
			case all && (watch || o.socket != ""):
				return usageError(cmd, errors.New("--all cannot be combined with --watch or --socket"))
			case all:
				return o.statusOfAll(cmd.Context(), output)
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			if watch {
				ctx, stop := followContext(cmd.Context())
				defer stop()
				return printer.Refresh(ctx, s.out, every, func(ctx context.Context, screen printer.Screen) ([]string, error) {
					st, err := c.Status(ctx)
					return printer.StatusLines(&st, time.Now(), screen, true), err
				})
			}
			return showStatus(cmd.Context(), s, c, output)
		},
	}
	o.bind(cmd)
	outputFlag(cmd, &output, "text", "json", "yaml")
	cmd.Flags().BoolVar(&all, "all", false, "Show all processes of this user on this machine")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "Keep refreshing the output")
	cmd.Flags().DurationVar(&every, "interval", 2*time.Second, "Refresh at this interval with --watch")
	return cmd
}

// showStatus shows one process once.
func showStatus(ctx context.Context, s streams, c *admin.Client, output string) error {
	st, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if output == "text" {
		screen := printer.ScreenOf(s.out)
		return screen.Write(printer.StatusLines(&st, time.Now(), screen, false))
	}
	return printer.Output(s.out, output, &st, nil)
}

// statusOfAll shows all processes: as text one after the other, else as a list. One
// that does not answer hides no other.
func (o *steerOptions) statusOfAll(ctx context.Context, output string) error {
	sockets, err := admin.FindAll(ctx)
	if err != nil {
		return failure.Usage.Wrap(err)
	}
	var list []admin.Status
	var lines []string
	var failed []error
	screen := printer.ScreenOf(o.streams.out)
	for _, socket := range sockets {
		st, err := admin.NewClient(socket).Status(ctx)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if list = append(list, st); len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(append(lines, "socket "+socket), printer.StatusLines(&st, time.Now(), screen, false)...)
	}
	if output == "text" {
		return errors.Join(append(failed, screen.Write(lines))...)
	}
	return errors.Join(append(failed, printer.Output(o.streams.out, output, list, nil))...)
}

// minRefresh is the shortest interval of what is shown again and again.
const minRefresh = 100 * time.Millisecond
