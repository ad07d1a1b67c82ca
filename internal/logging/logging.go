// SPDX-License-Identifier: Apache-2.0

// Package logging provides the slog handlers of a process: the console for people, the feed of each controller with its level, rate limits
// and last lines, the accounts of tenants, and the redaction of Secrets. It sets no global handler.
package logging

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Formats are the values of --log-format.
var Formats = []string{"text", "json"}

// New returns a logger that writes lines for a terminal or for a log collector.
func New(w io.Writer, format string, verbosity int) (*slog.Logger, error) {
	level := slog.LevelInfo
	if verbosity > 0 {
		level = slog.LevelDebug
	}
	of := &accounts{all: map[string]*account{}}
	switch format {
	case "text":
		return slog.New(leveled{NewConsole(w, AllLevels), level, of}), nil
	case "json":
		return slog.New(leveled{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: AllLevels}), level, of}), nil
	}
	return nil, fmt.Errorf("--log-format %q: want one of %v", format, Formats)
}

// Levels are the names of levels, the most verbose first.
var Levels = []string{"debug", "info", "warn", "error"}

// demoted is a handler that passes records on at the debug level, and discards more detailed ones: from klog's V(5) on, client-go logs
// requests, and from V(8) on their bodies, including Secrets.
type demoted struct{ next slog.Handler }

// Demote returns a demoted handler around next.
func Demote(next slog.Handler) slog.Handler { return &demoted{next} }

// Enabled implements slog.Handler.
func (d *demoted) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelDebug && d.next.Enabled(ctx, slog.LevelDebug)
}

// Handle implements slog.Handler. It checks the level again, because klog passes on errors even if the level is not enabled.
func (d *demoted) Handle(ctx context.Context, r slog.Record) error {
	if !d.next.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	r.Level = slog.LevelDebug
	return d.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (d *demoted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &demoted{d.next.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (d *demoted) WithGroup(name string) slog.Handler { return &demoted{d.next.WithGroup(name)} }

// LineWriter returns a function that writes lines of JSON, either unchanged or in the format of the console.
func LineWriter(w io.Writer, format string) func([]byte) error {
	if format == "json" {
		return func(line []byte) error {
			_, err := w.Write(line)
			return err
		}
	}
	out := NewConsole(w, AllLevels)
	return func(line []byte) error {
		r, err := parseRecord(line)
		if err != nil {
			return err
		}
		return out.Handle(context.Background(), r)
	}
}

// parseRecord parses a line written by slog's JSONHandler, preserving the order of its keys.
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

// valueOf converts a value for the console: strings unquoted, durations with units.
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

// durationKeys are the attributes that are durations, which are nanoseconds in JSON.
var durationKeys = []string{"duration", "took", "after", "hold", "timeout"}
