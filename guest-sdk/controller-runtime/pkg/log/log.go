// SPDX-License-Identifier: Apache-2.0

// Package log has the logger of a module. Its lines go to the log of the host,
// unless SetLogger has set another logger.
package log

import (
	"context"
	"sync/atomic"

	"github.com/go-logr/logr"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
)

// Log is the logger of the module. Loggers derived from it follow a later
// SetLogger.
var Log = logr.New(&deferred{})

// root is the last argument of SetLogger. All loggers of the module share it.
var root atomic.Pointer[logr.LogSink]

func init() { SetLogger(hostlog.New(hostlog.Options{})) }

// SetLogger makes Log write to l.
func SetLogger(l logr.Logger) {
	sink := l.GetSink()
	if sink == nil {
		sink = NullLogSink{}
	}
	root.Store(&sink)
}

// FromContext returns the logger of ctx, or Log.
func FromContext(ctx context.Context, keysAndValues ...any) logr.Logger {
	l := Log
	if ctx != nil {
		if own, err := logr.FromContext(ctx); err == nil {
			l = own
		}
	}
	return l.WithValues(keysAndValues...)
}

// IntoContext returns a context with the logger.
func IntoContext(ctx context.Context, l logr.Logger) context.Context { return logr.NewContext(ctx, l) }

// deferred looks up the root for each line. It applies its names and values to
// the root when the root is known.
type deferred struct {
	add  func(logr.LogSink) logr.LogSink // nil if nothing was added
	last atomic.Pointer[resolved]
}

// resolved is the sink of a deferred while root has the given value.
type resolved struct {
	root *logr.LogSink
	sink logr.LogSink
}

func (d *deferred) sink() logr.LogSink {
	now := root.Load()
	if last := d.last.Load(); last != nil && last.root == now {
		return last.sink
	}
	r := &resolved{now, *now}
	if d.add != nil {
		r.sink = d.add(r.sink)
	}
	d.last.Store(r)
	return r.sink
}

// then returns a copy of d that also applies more.
func (d *deferred) then(more func(logr.LogSink) logr.LogSink) logr.LogSink {
	before := d.add
	return &deferred{add: func(s logr.LogSink) logr.LogSink {
		if before != nil {
			s = before(s)
		}
		return more(s)
	}}
}

// Init implements logr.LogSink.
func (*deferred) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (d *deferred) Enabled(level int) bool { return d.sink().Enabled(level) }

// Info implements logr.LogSink.
func (d *deferred) Info(level int, msg string, kv ...any) { d.sink().Info(level, msg, kv...) }

// Error implements logr.LogSink.
func (d *deferred) Error(err error, msg string, kv ...any) { d.sink().Error(err, msg, kv...) }

// WithValues implements logr.LogSink.
func (d *deferred) WithValues(kv ...any) logr.LogSink {
	return d.then(func(s logr.LogSink) logr.LogSink { return s.WithValues(kv...) })
}

// WithName implements logr.LogSink.
func (d *deferred) WithName(name string) logr.LogSink {
	return d.then(func(s logr.LogSink) logr.LogSink { return s.WithName(name) })
}

// NullLogSink discards all lines.
type NullLogSink struct{}

// Init implements logr.LogSink.
func (NullLogSink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (NullLogSink) Enabled(int) bool { return false }

// Info implements logr.LogSink.
func (NullLogSink) Info(int, string, ...any) {}

// Error implements logr.LogSink.
func (NullLogSink) Error(error, string, ...any) {}

// WithName implements logr.LogSink.
func (n NullLogSink) WithName(string) logr.LogSink { return n }

// WithValues implements logr.LogSink.
func (n NullLogSink) WithValues(...any) logr.LogSink { return n }
