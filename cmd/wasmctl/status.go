package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

func newCmdStatus(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the controllers of a running process",
		Long: `Shows the controllers of a running process, and the watches of each.

READY objects are due, WAITING ones wait for a time (a requeue, a retry, the debounce), RUNNING ones are reconciled now.
RUNS and FAILED count since the start. A watch is FOR so long in its STATE: syncing, ready, denied, absent or failing.`,
		Example: `  wasmctl status
  wasmctl status -o json | jq '.controllers[].watches'`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(outputFormats, output) {
				return usageError(cmd, fmt.Errorf("--output %q: want one of %s", output, strings.Join(outputFormats, ", ")))
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			st, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			return writeStatus(s.out, output, &st)
		},
	}
	o.bind(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", strings.Join(outputFormats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func writeStatus(w io.Writer, format string, st *admin.Status) error {
	var b []byte
	var err error
	switch format {
	case "json":
		b, err = json.MarshalIndent(st, "", "  ")
		b = append(b, '\n')
	case "yaml":
		b, err = yaml.Marshal(st)
	default:
		b = statusText(st, time.Now())
	}
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// statusText is a line per controller, and one per watch below.
func statusText(st *admin.Status, now time.Time) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "wasmctl %s, pid %d, up %s", st.Version, st.PID, age(now, st.Started))
	if st.Leader != nil {
		b.WriteString(map[bool]string{true: ", leads", false: ", stands by"}[*st.Leader])
	}
	b.WriteString("\n\n")
	t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	row := func(cells ...any) {
		format := strings.TrimSuffix(strings.Repeat("%v\t", len(cells)), "\t") + "\n"
		_, _ = fmt.Fprintf(t, format, cells...) // to memory
	}
	row("CONTROLLER", "KIND", "READY", "WAITING", "RUNNING", "RUNS", "FAILED", "STATE")
	for _, c := range st.Controllers {
		var failed uint64
		for _, n := range c.Failures {
			failed += n
		}
		row(c.Name, c.Kind, c.Ready, c.Waiting, c.Running, c.Runs, failed, controllerState(&c))
	}
	row()
	row("GENERATION", "STATE", "FOR", "RUNS", "FAILED", "DIGEST", "")
	for _, c := range st.Controllers {
		for _, g := range c.Generations {
			row(c.Name+": "+generationName(g.Number), g.State, age(now, g.Since), g.Runs, g.Errors, shortDigest(g.Digest), generationNote(&g))
		}
	}
	quarantineRows(st, now, row)
	row()
	row("WATCH", "STATE", "FOR", "OBJECTS", "")
	for _, c := range st.Controllers {
		for _, w := range c.Watches {
			row(c.Name+": "+w.Source, w.Phase, age(now, w.Since), w.Objects, w.Message)
		}
	}
	_ = t.Flush() // to memory
	return []byte(b.String())
}

func generationName(number uint64) string {
	if number == 0 {
		return "-" // it never became one
	}
	return strconv.FormatUint(number, 10)
}

func generationNote(g *admin.Generation) string {
	switch {
	case g.Reason != "":
		first, _, _ := strings.Cut(g.Reason, "\n")
		return first
	case g.Canary != "":
		return g.Canary
	case g.Kept && g.State != "kept":
		return "kept"
	}
	return ""
}

func controllerState(c *admin.Controller) string {
	switch {
	case c.Phase != phaseRunning:
		first, _, _ := strings.Cut(c.Message, "\n")
		return strings.TrimSuffix(c.Phase+": "+first, ": ")
	case c.Paused:
		return "paused"
	case slices.ContainsFunc(c.Watches, func(w admin.Watch) bool { return w.Phase != "ready" }):
		return "watches not ready"
	case slices.ContainsFunc(c.Watches, func(w admin.Watch) bool { return w.Unmapped > 0 }):
		return "map fails"
	case c.HotLoops > 0:
		return "hot loops: " + strconv.FormatUint(c.HotLoops, 10)
	}
	return "ok"
}

// age is a duration with at most two units, as kubectl shows it.
func age(now, since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	switch d := now.Sub(since); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}
