package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// logOutcome writes one line per reconcile.
func (s *session) logOutcome(out applier.Outcome) {
	ctx := context.Background()
	level, msg := slog.LevelInfo, "reconciled"
	switch {
	case errors.Is(out.Err, applier.ErrObjectNotFound):
		level, msg = slog.LevelDebug, "object is gone"
	case errors.Is(out.Err, applier.ErrInterrupted):
		level, msg = slog.LevelWarn, "reconcile interrupted"
	case out.Failed():
		level, msg = slog.LevelWarn, "reconcile failed"
	}
	if !s.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("object", out.Key.String()), slog.String("reason", out.Reason.String()),
		slog.String("action", actionText(out.Action)), slog.Duration("duration", out.Duration),
	}
	if out.Attempt > 1 || out.Failed() {
		attrs = append(attrs, slog.Int("attempt", out.Attempt))
	}
	if out.Failed() {
		attrs = append(attrs, slog.String("decided_by", string(out.DecidedBy)), slog.String("error", errorText(out.Err)))
	}
	attrs = append(attrs, slog.String("controller", s.name)) // what is the same in most lines comes last
	if out.ID != "" {
		attrs = append(attrs, slog.String("reconcile_id", out.ID), slog.Uint64("generation", out.Generation))
	}
	s.log.LogAttrs(ctx, level, msg, attrs...)
}

// errorText is the error, without a reason that its message says already.
func errorText(err error) string {
	if e, ok := err.(*abi.ResultError); ok && strings.Contains(e.Message, e.Reason) { //nolint:errorlint // wrapped, it has more to say
		return strings.TrimSpace(e.Message)
	}
	return strings.TrimSpace(err.Error())
}

// actionText is the action without digits that nobody reads.
func actionText(a abi.Action) string {
	if a.After > time.Second {
		a.After = a.After.Round(10 * time.Millisecond)
	} else if a.After > time.Millisecond {
		a.After = a.After.Round(time.Millisecond)
	}
	return a.String()
}

// announce says what is watched and what the module may do.
func (s *session) announce() {
	info, limits := s.module.Info(), s.module.Limits()
	s.log.Info("module loaded", "module", s.opts.module, "digest", shortDigest(info.Digest), "size", byteSize(info.Size),
		"memory_limit", byteSize(limits.Memory), "timeout", limits.Timeout, "concurrency", s.module.Concurrency())
	scope := "all namespaces"
	if ns := s.namespaces(); len(ns) > 0 {
		scope = "namespace " + ns[0]
	}
	if !s.kind.Namespaced {
		scope = "cluster"
	}
	attrs := []any{"kind", s.kind.Name(), "version", s.kind.Version, "scope", scope, "controller", s.name}
	if s.watch.LabelSelector != "" {
		attrs = append(attrs, "selector", s.watch.LabelSelector)
	}
	if s.watch.FieldSelector != "" {
		attrs = append(attrs, "field_selector", s.watch.FieldSelector)
	}
	s.log.Info("reconciles", attrs...)
	for _, k := range s.owns {
		s.log.Info("watches owned", "kind", k.Name(), "version", k.Version, "controller", s.name)
	}
	for _, right := range s.policy.Describe() {
		s.log.Info("module may", "right", right, "controller", s.name)
	}
}

// shortDigest is enough of a digest to tell modules apart.
func shortDigest(d string) string {
	if len(d) > len("sha256:")+12 {
		return d[:len("sha256:")+12]
	}
	return d
}
