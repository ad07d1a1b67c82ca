package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

func newCmdLogs(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	q := admin.LogQuery{}
	var since time.Duration
	var output string
	cmd := &cobra.Command{
		Use:   "logs CONTROLLER",
		Short: "Show the log of a running controller",
		Long: `Shows the last lines of a controller's log: what the host says of it, and what its module logs. The process keeps the last
2,000 lines of each controller, at most 512 KiB. Nothing is there that its log level leaves out: see "wasmctl log-level".`,
		Example: `  wasmctl logs webapp --follow
  wasmctl logs webapp --object shop/hello --since 10m
  wasmctl logs webapp -o json | jq 'select(.level == "WARN")'`,
		Args: exactArgs("CONTROLLER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(logFormats, output) {
				return usageError(cmd, fmt.Errorf("--output %q: want one of %s", output, strings.Join(logFormats, ", ")))
			}
			if since > 0 {
				q.Since = time.Now().Add(-since)
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			ctx, stop := followContext(cmd.Context())
			defer stop()
			err = c.Logs(ctx, args[0], q, lineWriter(s.out, output))
			if q.Follow && (ctx.Err() != nil || errors.Is(err, io.ErrUnexpectedEOF)) {
				return nil // it was told to stop, or the process was
			}
			return steerError(cmd.Context(), c, err)
		},
	}
	o.bind(cmd)
	f := cmd.Flags()
	f.StringVar(&q.Object, "object", "", "only the lines about this object: [NAMESPACE/]NAME")
	f.BoolVarP(&q.Follow, "follow", "f", false, "go on with what comes")
	f.DurationVar(&since, "since", 0, "only the lines of this long, for example 10m (default: all that are kept)")
	f.IntVar(&q.Tail, "tail", -1, "at most so many of the lines that are kept; -1 is all")
	f.StringVarP(&output, "output", "o", "text", strings.Join(logFormats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(logFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// lineWriter writes lines of JSON as they are, or as the console shows them.
func lineWriter(w io.Writer, format string) func([]byte) error {
	if format == "json" {
		return func(line []byte) error {
			_, err := w.Write(line)
			return err
		}
	}
	out := newConsole(w, allLevels)
	return func(line []byte) error {
		r, err := parseRecord(line)
		if err != nil {
			return err
		}
		return out.Handle(context.Background(), r)
	}
}

// parseRecord reads a line that slog's JSONHandler wrote, in the order of its
// keys.
func parseRecord(line []byte) (slog.Record, error) {
	var head struct {
		Time  time.Time  `json:"time"`
		Level slog.Level `json:"level"`
		Msg   string     `json:"msg"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return slog.Record{}, fmt.Errorf("line of the log: %w", err)
	}
	r := slog.NewRecord(head.Time, head.Level, head.Msg, 0)
	dec := json.NewDecoder(strings.NewReader(string(line)))
	_, err := dec.Token() // {
	for err == nil && dec.More() {
		var key json.Token
		if key, err = dec.Token(); err != nil {
			break
		}
		var value json.RawMessage
		if err = dec.Decode(&value); err != nil {
			break
		}
		name, _ := key.(string)
		if known := map[string]bool{slog.TimeKey: true, slog.LevelKey: true, slog.MessageKey: true}; !known[name] {
			r.AddAttrs(slog.Any(name, valueOf(name, value)))
		}
	}
	return r, err
}

// valueOf is a value as the console shows it: texts bare, durations as such.
func valueOf(key string, js json.RawMessage) any {
	var v any
	if err := json.Unmarshal(js, &v); err != nil {
		return string(js)
	}
	switch v := v.(type) {
	case string:
		return v
	case float64:
		if slices.Contains(durationKeys, key) {
			return time.Duration(v)
		}
	}
	return string(js)
}

// durationKeys are the attributes that are durations, which JSON has in
// nanoseconds.
var durationKeys = []string{"duration", "took", "after", "hold", "timeout"}

func newCmdLogLevel(s streams) *cobra.Command {
	o := &steerOptions{streams: s}
	cmd := &cobra.Command{
		Use:   "log-level CONTROLLER [LEVEL]",
		Short: "Show or set how much a running controller logs",
		Long: `Shows the least level of what a running controller logs, or sets it until the process ends: debug, info, warn or error. It is
the level of the host's lines and of the module's own; other controllers keep theirs.`,
		Example: `  wasmctl log-level webapp debug`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return usageError(cmd, errors.New("want CONTROLLER, and perhaps a LEVEL"))
			}
			level := ""
			if len(args) == 2 {
				if level = strings.ToLower(args[1]); !slices.Contains(logLevels, level) {
					return usageError(cmd, fmt.Errorf("level %q: want one of %s", args[1], strings.Join(logLevels, ", ")))
				}
			}
			c, err := o.client(cmd.Context())
			if err != nil {
				return err
			}
			level, err = c.LogLevel(cmd.Context(), args[0], level)
			if err != nil {
				return steerError(cmd.Context(), c, err)
			}
			_, err = fmt.Fprintln(s.out, level)
			return err
		},
	}
	o.bind(cmd)
	return cmd
}
