// SPDX-License-Identifier: Apache-2.0

// Package hostlog is the logr.LogSink of a module. It writes to the log of the
// host, which adds the controller, the object and the run.
package hostlog

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-logr/logr"
)

// Level is the level of a line, with the numbers of log/slog.
type Level int

// The levels of logr, in which all numbers above 0 are debug levels, plus Warn,
// which zap has.
const (
	Debug Level = -4
	Info  Level = 0
	Warn  Level = 4
	Error Level = 8
)

// Host receives the lines of a run.
type Host interface {
	// Enabled reports whether lines of the level are recorded.
	Enabled(level Level) bool
	// Log writes one line; attrs are pairs of a name and a value.
	Log(level Level, msg string, attrs []any)
}

// Current is the host of the current run, or nil outside of a run. A module has
// a single thread.
var Current Host

// Outside is the host outside of a run, for example in main. It is nil in a
// program that is not a module.
var Outside Host

// host returns the destination of lines of a level; nil is standard error.
// Errors outside of a run also go to standard error, because the output of a
// main that exits becomes part of the host's error.
func host(level Level) Host {
	if Current == nil && level < Error {
		return Outside
	}
	return Current
}

// Options are the options of a sink. The zero value uses the levels of the
// host.
type Options struct {
	// Enabled filters the levels of logr. If nil, all levels are enabled.
	Enabled func(level int) bool
	// Dest receives the lines as text, instead of the host.
	Dest io.Writer
}

// New returns a logger for the host.
func New(o Options) logr.Logger { return logr.New(&sink{o: o}) }

type sink struct {
	o      Options
	name   string
	values []any
}

// Init implements logr.LogSink.
func (s *sink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s *sink) Enabled(level int) bool {
	if s.o.Enabled != nil && !s.o.Enabled(level) {
		return false
	}
	return s.o.Dest != nil || Enabled(levelOf(level))
}

// Enabled reports whether lines of the level are recorded.
func Enabled(level Level) bool {
	h := host(level)
	return h == nil || h.Enabled(level)
}

func levelOf(level int) Level {
	if level > 0 {
		return Debug
	}
	return Info
}

// Info implements logr.LogSink.
func (s *sink) Info(level int, msg string, keysAndValues ...any) {
	s.write(levelOf(level), msg, keysAndValues)
}

// Error implements logr.LogSink.
func (s *sink) Error(err error, msg string, keysAndValues ...any) {
	if err != nil {
		keysAndValues = append([]any{"error", err}, keysAndValues...)
	}
	s.write(Error, msg, keysAndValues)
}

// WithValues implements logr.LogSink.
func (s *sink) WithValues(keysAndValues ...any) logr.LogSink {
	c := *s
	c.values = append(slices.Clip(s.values), keysAndValues...)
	return &c
}

// WithName implements logr.LogSink.
func (s *sink) WithName(name string) logr.LogSink {
	c := *s
	if s.name != "" {
		name = s.name + "." + name
	}
	c.name = name
	return &c
}

func (s *sink) write(level Level, msg string, keysAndValues []any) {
	attrs := append(slices.Clip(s.values), keysAndValues...)
	if s.name != "" {
		attrs = append([]any{"logger", s.name}, attrs...)
	}
	if s.o.Dest == nil {
		Write(level, msg, attrs)
		return
	}
	_, _ = io.WriteString(s.o.Dest, line(level, msg, attrs))
}

// Write writes a line to the host's log; attrs are pairs of a name and a value.
func Write(level Level, msg string, attrs []any) {
	if h := host(level); h != nil {
		h.Log(level, msg, attrs)
		return
	}
	_, _ = io.WriteString(os.Stderr, line(level, msg, attrs))
}

// line formats a line of text.
func line(level Level, msg string, attrs []any) string {
	var b strings.Builder
	b.WriteString(map[Level]string{Debug: "DEBUG ", Warn: "WARN ", Error: "ERROR "}[level])
	b.WriteString(msg)
	for i := 0; i+1 < len(attrs); i += 2 {
		fmt.Fprintf(&b, " %v=%q", attrs[i], fmt.Sprint(attrs[i+1]))
	}
	b.WriteByte('\n')
	return b.String()
}
