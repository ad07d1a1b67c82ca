package main

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// write writes the trace of a run: a span from when it was due to its end, with
// the wait, the call of the guest, and each request to the API server below.
// Requests of the guest's are below its call, those of what it declared beside.
func (t *tracing) write(controller string, key abi.Key, r *history.Run) {
	if r.ID == "" {
		return // no guest was called
	}
	ctx := context.WithValue(context.Background(), traceIDKey{}, t.idOf(r.ID))
	due, end := r.Started.Add(-r.Queued), r.Started.Add(r.Took)
	ctx, root := t.tracer.Start(ctx, "reconcile "+controller, trace.WithTimestamp(due), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(runAttributes(controller, key, r)...))
	if !root.IsRecording() {
		return // the sampler does not want it
	}
	t.span(ctx, "queue", due, r.Started)
	guest := ctx
	guestEnd := r.GuestStarted.Add(r.GuestTook)
	if r.GuestTook > 0 {
		var span trace.Span
		guest, span = t.tracer.Start(ctx, "guest", trace.WithTimestamp(r.GuestStarted), trace.WithAttributes(attribute.Int64("wasmctl.fuel", r.Fuel)))
		span.End(trace.WithTimestamp(guestEnd))
	}
	for i := range r.Ops {
		o := &r.Ops[i]
		switch {
		case o.Started.IsZero(): // answered by the cache, or denied
		case !o.Started.After(guestEnd):
			t.op(guest, o)
		default:
			t.op(ctx, o)
		}
	}
	if r.Failed {
		root.SetStatus(codes.Error, r.Error)
	}
	root.End(trace.WithTimestamp(end))
}

func (t *tracing) span(ctx context.Context, name string, start, end time.Time) {
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(start))
	span.End(trace.WithTimestamp(end))
}

// op writes the span of one request.
func (t *tracing) op(ctx context.Context, o *history.Op) {
	_, span := t.tracer.Start(ctx, o.Name+" "+o.Resource, trace.WithTimestamp(o.Started), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("k8s.resource", o.Resource), attribute.String("k8s.subresource", o.Subresource), attribute.String("k8s.object", o.Key.String()),
			attribute.String("wasmctl.effect", string(o.Effect)), attribute.Bool("wasmctl.dry_run", o.DryRun),
		))
	if o.Error != "" {
		span.SetStatus(codes.Error, o.Error)
	}
	span.End(trace.WithTimestamp(o.Started.Add(o.Took)))
}

func runAttributes(controller string, key abi.Key, r *history.Run) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("wasmctl.controller", controller), attribute.String("wasmctl.object", key.String()),
		attribute.String("k8s.namespace.name", key.Namespace), attribute.String("wasmctl.reconcile_id", r.ID),
		attribute.String("wasmctl.trigger", strings.Join(reasonTexts(&r.Reasons), ", ")), attribute.Int("wasmctl.attempt", r.Attempt),
		attribute.Int64("wasmctl.generation", int64(r.Generation)), //nolint:gosec // counts swaps
		attribute.String("wasmctl.action", r.Action.String()), attribute.String("wasmctl.result", resultOf(r)),
	}
	if r.Kind != "" {
		out = append(out, attribute.String("error.type", r.Kind))
	}
	if r.Dropped > 0 {
		out = append(out, attribute.Int("wasmctl.operations_left_out", r.Dropped))
	}
	return out
}
