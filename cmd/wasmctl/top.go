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

func newCmdTop(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var output string
	var once bool
	var every time.Duration
	var objects int
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the busiest controllers and objects of a running process",
		Long: `Shows what keeps a running process busy: averages of about the last minute, those with the most time first. BUSY is the share
of the time that runs took, 100% is one worker all the time; they wait for the API server in it too. FUEL is the work of the guests,
where it is metered. On a terminal it goes on until ctrl-C.

Objects are those that the history has room for: see --history of "wasmctl run".`,
		Example: `  wasmctl top
  wasmctl top --once --objects 50
  wasmctl top -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !slices.Contains(outputFormats, output):
				return usageError(cmd, fmt.Errorf("--output %q: want one of %s", output, strings.Join(outputFormats, ", ")))
			case every < minRefresh:
				return usageError(cmd, fmt.Errorf("--interval %v: want at least %v", every, minRefresh))
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			if output == "text" && !once && screenOf(s.out).height > 0 {
				ctx, stop := followContext(cmd.Context())
				defer stop()
				return refresh(ctx, s.out, every, func(ctx context.Context, screen screen) ([]string, error) {
					top, err := c.Top(ctx, objects)
					return topLines(&top, screen), err
				})
			}
			top, err := c.Top(cmd.Context(), objects)
			if err != nil {
				return err
			}
			return writeOutput(s.out, output, &top, func() []byte { return []byte(strings.Join(topLines(&top, screenOf(s.out)), "\n") + "\n") })
		},
	}
	o.bind(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", strings.Join(outputFormats, ", "))
	cmd.Flags().BoolVar(&once, "once", false, "show it once, on a terminal too")
	cmd.Flags().IntVar(&objects, "objects", 20, "how many objects are shown")
	cmd.Flags().DurationVar(&every, "interval", 2*time.Second, "how often it is shown")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// topLines are the controllers and the objects, each a line.
func topLines(top *admin.Top, s screen) []string {
	load := []column{{title: "BUSY", right: true}, {title: "RUNS/S", right: true}, {title: "ERRORS/S", right: true}, {title: "FUEL/S", right: true, drop: 2}}
	cells := func(l *admin.Load) []any {
		return []any{fmt.Sprintf("%.1f%%", 100*l.Busy), fmt.Sprintf("%.2f", l.Runs), fmt.Sprintf("%.2f", l.Errors), countText(l.Fuel)}
	}
	controllers := &table{columns: append(append([]column{{title: "CONTROLLER", least: 12}}, load...),
		column{title: "WORKERS", right: true, drop: 1}, column{title: "MEMORY", right: true})}
	for i := range top.Controllers {
		c := &top.Controllers[i]
		row := append([]any{c.Name}, cells(&c.Load)...)
		controllers.row("", append(row, fmt.Sprintf("%d/%d", c.Running, c.Workers), byteSize(c.Memory))...)
	}
	objects := &table{columns: append([]column{{title: "OBJECT", least: 20}, {title: "CONTROLLER", least: 12}}, load...)}
	for i := range top.Objects {
		o := &top.Objects[i]
		objects.row("", append([]any{o.Object, o.Controller}, cells(&o.Load)...)...)
	}
	return append(append(controllers.render(s.width, s.coloured), ""), objects.render(s.width, s.coloured)...)
}

// countText is a count with at most four digits.
func countText(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= u.size {
			return fmt.Sprintf("%.1f%s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.0f", n)
}
