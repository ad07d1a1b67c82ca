// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// console is a handler for people: time, level and message are unquoted at the beginning of the line, and the attributes follow as
// key=value, in the format of slog's TextHandler.
type console struct {
	attrs slog.Handler // writes the attributes of a record to out.line
	out   *consoleOut
}

// consoleOut is shared by a console and the handlers derived from it.
type consoleOut struct {
	mu   sync.Mutex
	line bytes.Buffer // guarded by mu
	w    io.Writer    // guarded by mu
}

// NewConsole returns a handler that writes lines for people.
func NewConsole(w io.Writer, level slog.Leveler) slog.Handler {
	out := &consoleOut{w: w}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: onlyAttributes}
	return &console{slog.NewTextHandler(&out.line, opts), out}
}

// onlyAttributes omits what Handle has written already, and excess digits of durations.
func onlyAttributes(groups []string, a slog.Attr) slog.Attr {
	if _, ok := a.Value.Any().(slog.Level); ok && len(groups) == 0 && a.Key == slog.LevelKey {
		return slog.Attr{}
	}
	if len(groups) == 0 && a.Key == slog.MessageKey && a.Value.String() == "" {
		return slog.Attr{}
	}
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().Round(10*time.Microsecond).String())
	}
	return a
}

// Enabled implements slog.Handler.
func (c *console) Enabled(ctx context.Context, level slog.Level) bool {
	return c.attrs.Enabled(ctx, level)
}

// Handle implements slog.Handler. It writes one line with one call.
func (c *console) Handle(ctx context.Context, r slog.Record) error {
	rest := slog.NewRecord(time.Time{}, r.Level, "", r.PC) // a zero time is not written
	r.Attrs(func(a slog.Attr) bool {
		rest.AddAttrs(a)
		return true
	})
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	line := &c.out.line
	line.Reset()
	// The date is omitted, because a person reads the lines as they appear.
	_, _ = fmt.Fprintf(line, "%s %-5s %s ", r.Time.Format("15:04:05.000"), r.Level, bareMessage(r.Message)) // to memory
	if err := c.attrs.Handle(ctx, rest); err != nil {
		return err
	}
	_, err := c.out.w.Write(append(bytes.TrimRight(line.Bytes(), " \n"), '\n'))
	return err
}

// bareMessage quotes a message that could be mistaken for something else: guests write messages too, and must not forge attributes, lines
// or terminal codes.
func bareMessage(msg string) string {
	odd := func(r rune) bool { return r == '=' || r == '"' || r == unicode.ReplacementChar || !unicode.IsPrint(r) }
	if msg == "" || strings.ContainsFunc(msg, odd) {
		return strconv.Quote(msg)
	}
	return msg
}

// WithAttrs implements slog.Handler.
func (c *console) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &console{c.attrs.WithAttrs(attrs), c.out}
}

// WithGroup implements slog.Handler.
func (c *console) WithGroup(name string) slog.Handler {
	return &console{c.attrs.WithGroup(name), c.out}
}
