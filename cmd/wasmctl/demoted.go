package main

import (
	"context"
	"log/slog"
)

// demoted is a handler that passes everything on at the debug level, and
// nothing that is more detailed than that: from klog's V(5) on, client-go logs
// requests, and at V(8) their bodies, Secrets included.
type demoted struct{ next slog.Handler }

func (d *demoted) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelDebug && d.next.Enabled(ctx, slog.LevelDebug)
}

// Handle implements slog.Handler. It asks again: klog hands errors over whether
// or not they are wanted.
func (d *demoted) Handle(ctx context.Context, r slog.Record) error {
	if !d.next.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	r.Level = slog.LevelDebug
	return d.next.Handle(ctx, r)
}

func (d *demoted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &demoted{d.next.WithAttrs(attrs)}
}

func (d *demoted) WithGroup(name string) slog.Handler { return &demoted{d.next.WithGroup(name)} }
