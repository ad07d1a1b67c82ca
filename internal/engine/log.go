// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/internal/telemetry"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// summary returns the level and the message of a reconcile's log line.
func summary(out *applier.Outcome) (level slog.Level, msg string) {
	level, msg = slog.LevelInfo, "reconciled"
	if out.Finalize {
		msg = "finalized"
	}
	switch {
	case errors.Is(out.Err, applier.ErrObjectNotFound):
		level, msg = slog.LevelDebug, "object deleted"
		if out.Reasons.First.Type == abi.ReasonTriggered { // a user named the object, perhaps with a spelling mistake
			level, msg = slog.LevelInfo, "object not found"
		}
	case errors.Is(out.Err, applier.ErrPaused):
		msg = "object paused"
	case errors.Is(out.Err, applier.ErrQuarantined):
		level, msg = slog.LevelDebug, "object quarantined"
	case errors.Is(out.Err, applier.ErrUnchanged):
		level, msg = slog.LevelDebug, "reconcile skipped: nothing it read has changed"
	case errors.Is(out.Err, applier.ErrDeleting):
		level, msg = slog.LevelDebug, "object being deleted"
	case errors.Is(out.Err, applier.ErrInterrupted):
		level, msg = slog.LevelWarn, "reconcile interrupted"
	case out.Failed():
		level, msg = slog.LevelWarn, "reconcile failed"
	}
	return level, msg
}

// logOutcome writes one line per reconcile. Under load the rate limit discards most lines,
// so it is checked before the line is built.
func (c *Controller) logOutcome(out *applier.Outcome) {
	ctx := context.Background()
	level, msg := summary(out)
	if !c.log.Enabled(ctx, level) {
		return
	}
	if f := logging.FeedOf(c.log); f != nil && f.Limited(out.Started.Add(out.Duration), level, msg) {
		return
	}
	var room [10]slog.Attr // avoids an allocation
	attrs := append(room[:0], slog.String("object", out.Key.String()), slog.String("reason", telemetry.ReasonText(&out.Reasons)),
		slog.String("action", history.Next{Action: out.Action}.String()), slog.Duration("duration", out.Duration))
	if out.Attempt > 1 || out.Failed() {
		attrs = append(attrs, slog.Int("attempt", out.Attempt))
	}
	if out.Failed() {
		attrs = append(attrs, slog.String("decided_by", string(out.DecidedBy)), slog.String("error", c.Telemetry.Secrets.Text(telemetry.ErrorText(out.Err))))
	}
	attrs = append(attrs, slog.String("controller", c.name)) // attributes that are the same in most lines come last
	if out.ID != "" {
		attrs = append(attrs, slog.String("reconcile_id", out.ID), slog.Uint64("revision", out.Revision))
		if out.Fuel > 0 {
			attrs = append(attrs, slog.Int64("fuel", out.Fuel))
		}
	}
	c.log.LogAttrs(ctx, level, msg, attrs...)
}

// announce logs the watches and the rights of the module.
func (c *Controller) announce(p *plan.Plan) {
	attrs := append([]any{"kind", c.kind.Name(), "version", c.kind.Version}, scopeAttrs(c.kind)...)
	if c.Module != nil {
		info, limits := c.Module.Info(), c.Module.Limits()
		c.log.Info("module loaded", "module", c.opts.Source, "digest", humanize.Digest(info.Digest), "size", humanize.Bytes(info.Size),
			"memory_limit", humanize.Bytes(limits.Memory), "timeout", limits.Timeout, "concurrency", c.Module.Concurrency())
	}
	c.log.Info("reconciles", append(attrs, "controller", c.name)...)
	for _, k := range p.Related {
		what, by := "watches", k.Watch.Map
		if k.Owned {
			what, by = "watches owned", ""
		}
		attrs := append([]any{"kind", k.Name(), "version", k.Version}, scopeAttrs(k)...)
		if by != "" {
			attrs = append(attrs, "map", by)
		}
		c.log.Info(what, append(attrs, "controller", c.name)...)
	}
	for _, right := range p.Policy.Describe() {
		c.log.Info("module rights", "right", right, "controller", c.name)
	}
	for i := range p.Webhooks {
		w := &p.Webhooks[i]
		c.log.Info("serves a webhook", "type", w.Type, "path", w.Path, "namespaces", cmp.Or(strings.Join(w.In, ","), "all"), "controller", c.name)
	}
	for _, conversion := range p.Conversions {
		c.log.Info("serves a conversion", "kind", conversion.Kind+"."+conversion.Group, "controller", c.name)
	}
	if len(p.Refused) > 0 {
		c.log.Warn("module is granted less than its manifest requests", "next", plan.HowToGrant, "controller", c.name)
		for _, right := range kubeapi.NewPolicy(p.Refused).Describe() {
			c.log.Warn("right is not granted", "right", right, "controller", c.name)
		}
	}
	if c.Module != nil {
		c.warnSettings()
	}
}

// scopeAttrs returns the log attributes that describe which objects of a kind are watched.
func scopeAttrs(k plan.Watched) []any {
	scope := "all namespaces"
	switch ns := k.Watch.Namespaces; {
	case !k.Namespaced:
		scope = "cluster"
	case len(ns) == 1:
		scope = "namespace " + ns[0]
	case len(ns) > 1:
		scope = "namespaces " + strings.Join(ns, ", ")
	}
	attrs := []any{"scope", scope}
	for _, a := range []struct{ name, value string }{
		{"selector", k.Watch.LabelSelector}, {"field_selector", k.Watch.FieldSelector}, {"predicates", strings.Join(k.Watch.Predicates, ", ")},
	} {
		if a.value != "" {
			attrs = append(attrs, a.name, a.value)
		}
	}
	return attrs
}

func (c *Controller) logStopped() {
	stats := c.Runtime.Stats()
	var failed uint64
	for _, n := range stats.Failures {
		failed += n
	}
	c.log.Info("stopped", "controller", c.name, "reconciles", stats.Started, "failed", failed)
}

// report publishes the result of a swap as an event and in metrics.
func (c *Controller) report(result life.Result, revision uint64, reason string) {
	if c.shared.OnSwap != nil {
		c.shared.OnSwap(c.name, string(result))
	}
	if c.shared.Record != nil && !c.opts.NoSwapEvents {
		c.shared.Record(c.kind.Watch.Namespaces, rollout.Event(result, c.name, revision, reason))
	}
}
