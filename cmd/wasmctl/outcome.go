package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// ended is told of each reconcile.
func (s *session) ended(out applier.Outcome) {
	if errors.Is(out.Err, applier.ErrObjectNotFound) {
		s.api.Forget(out.Key)
		s.runs.forget(out.Key)
	}
	s.count(&out)
	s.trials.end(&out)
	s.done.end(&out)
	s.recordEnd(&out)
	s.logOutcome(out)
}

// logOutcome writes one line per reconcile.
func (s *session) logOutcome(out applier.Outcome) {
	ctx := context.Background()
	level, msg := slog.LevelInfo, "reconciled"
	if out.Finalize {
		msg = "finalized"
	}
	switch {
	case errors.Is(out.Err, applier.ErrObjectNotFound):
		level, msg = slog.LevelDebug, "object is gone"
		if out.Reasons.First.Type == abi.ReasonTriggered { // somebody named it, and may have misspelt it
			level, msg = slog.LevelInfo, "object is not there"
		}
	case errors.Is(out.Err, applier.ErrPaused):
		msg = "object is paused"
	case errors.Is(out.Err, applier.ErrQuarantined):
		level, msg = slog.LevelDebug, "object is quarantined"
	case errors.Is(out.Err, applier.ErrDeleting):
		level, msg = slog.LevelDebug, "object is being deleted"
	case errors.Is(out.Err, applier.ErrInterrupted):
		level, msg = slog.LevelWarn, "reconcile interrupted"
	case out.Failed():
		level, msg = slog.LevelWarn, "reconcile failed"
	}
	if !s.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("object", out.Key.String()), slog.String("reason", reasonText(&out.Reasons)),
		slog.String("action", actionText(out.Action)), slog.Duration("duration", out.Duration),
	}
	if out.Attempt > 1 || out.Failed() {
		attrs = append(attrs, slog.Int("attempt", out.Attempt))
	}
	if out.Failed() {
		attrs = append(attrs, slog.String("decided_by", string(out.DecidedBy)), slog.String("error", s.secrets.Text(errorText(out.Err))))
	}
	attrs = append(attrs, slog.String("controller", s.name)) // what is the same in most lines comes last
	if out.ID != "" {
		attrs = append(attrs, slog.String("reconcile_id", out.ID), slog.Uint64("generation", out.Generation))
		if out.Fuel > 0 {
			attrs = append(attrs, slog.Int64("fuel", out.Fuel))
		}
	}
	s.log.LogAttrs(ctx, level, msg, attrs...)
}

// reasonText is the first reason, and how many there are besides.
func reasonText(r *queue.Reasons) string {
	if more := len(r.More) + r.Dropped; more > 0 {
		return fmt.Sprintf("%s and %d more", r.First, more)
	}
	return r.First.String()
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
	s.log.Info("module loaded", "module", s.file.path(), "digest", shortDigest(info.Digest), "size", byteSize(info.Size),
		"memory_limit", byteSize(limits.Memory), "timeout", limits.Timeout, "concurrency", s.module.Concurrency())
	attrs := append([]any{"kind", s.kind.Name(), "version", s.kind.Version}, scopeAttrs(s.kind)...)
	s.log.Info("reconciles", append(attrs, "controller", s.name)...)
	for _, k := range s.plan.related {
		what, by := "watches", k.watch.Map
		if k.owned {
			what, by = "watches owned", ""
		}
		attrs := append([]any{"kind", k.Name(), "version", k.Version}, scopeAttrs(k)...)
		if by != "" {
			attrs = append(attrs, "map", by)
		}
		s.log.Info(what, append(attrs, "controller", s.name)...)
	}
	for _, right := range s.plan.policy.Describe() {
		s.log.Info("module may", "right", right, "controller", s.name)
	}
	s.sayBeyond(s.plan)
	s.warnSettings()
}

// sayBeyond names what a module asks for and the grant's file does not give it.
func (s *session) sayBeyond(p *plan) {
	if len(p.beyond) > 0 {
		s.log.Info("the module is not granted all that it asks for", "missing", ruleLines(p.beyond), "controller", s.name)
	}
}

// warnSettings names the settings that the manifest does not have: most
// probably they are misspelt. A manifest without settings says nothing of them.
func (s *session) warnSettings() {
	values, _ := s.module.Settings()
	has := s.module.Manifest().Config
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, ok := has[key]; !ok && len(has) > 0 {
			s.log.Warn("the module's manifest has no such setting", "setting", key,
				"has", strings.Join(slices.Sorted(maps.Keys(has)), ", "), "controller", s.name)
		}
	}
}

// scopeAttrs says what of a kind is watched.
func scopeAttrs(k watched) []any {
	scope := "all namespaces"
	switch ns := k.watch.Namespaces; {
	case !k.Namespaced:
		scope = "cluster"
	case len(ns) == 1:
		scope = "namespace " + ns[0]
	case len(ns) > 1:
		scope = "namespaces " + strings.Join(ns, ", ")
	}
	attrs := []any{"scope", scope}
	for _, a := range []struct{ name, value string }{
		{"selector", k.watch.LabelSelector}, {"field_selector", k.watch.FieldSelector}, {"predicates", strings.Join(k.watch.Predicates, ", ")},
	} {
		if a.value != "" {
			attrs = append(attrs, a.name, a.value)
		}
	}
	return attrs
}

// shortDigest is enough of a digest to tell modules apart.
func shortDigest(d string) string {
	if len(d) > len("sha256:")+12 {
		return d[:len("sha256:")+12]
	}
	return d
}
