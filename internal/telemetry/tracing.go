// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// flushLimit bounds how long the process waits at its end for the last traces to be sent.
const flushLimit = 5 * time.Second

// Tracing writes one trace for each run after the run has ended, so that it does not delay
// the run. The trace ID is derived from the reconcile ID, so that logs can contain it while
// the run is in progress.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	secret   [16]byte // makes the trace IDs unique to this process
}

// NewTracing returns a Tracing that writes to an exporter. The version is that of the
// program.
func NewTracing(exporter sdktrace.SpanExporter, version string) (*Tracing, error) {
	about, err := resource.New(context.Background(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "wasmctl"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t := &Tracing{}
	if _, err := rand.Read(t.secret[:]); err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about), sdktrace.WithIDGenerator(ids{}))
	t.tracer = t.provider.Tracer("github.com/wasmctl/wasmctl", trace.WithInstrumentationVersion(version))
	return t, nil
}

// Close sends the remaining traces.
func (t *Tracing) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("traces: sending the last ones: %w", err)
	}
	return nil
}

// TraceID returns the ID of a run's trace, in hexadecimal.
func (t *Tracing) TraceID(reconcileID string) string { return t.idOf(reconcileID).String() }

// TraceIDs returns TraceID, or nil if no traces are written.
func (t *Tracing) TraceIDs() func(reconcileID string) string {
	if t == nil {
		return nil
	}
	return t.TraceID
}

func (t *Tracing) idOf(reconcileID string) trace.TraceID {
	sum := sha256.Sum256(append(t.secret[:], reconcileID...))
	return trace.TraceID(sum[:16])
}

// ids assigns the ID in the context to a trace. It implements sdktrace.IDGenerator.
type ids struct{}

type traceIDKey struct{}

// NewIDs implements sdktrace.IDGenerator.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(traceIDKey{}).(trace.TraceID)
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		binary.LittleEndian.PutUint64(id[:], mathrand.Uint64())
	}
	return id
}

// write writes the trace of a run. Its root span lasts from when the run was due to its
// end; the spans of the wait, of the call of the guest and of requests to the API server
// are below. Requests of the guest are below its call; those for declared objects are
// siblings of the call.
func (t *Tracing) write(controller string, key abi.Key, r *history.Run) {
	if r.ID == "" {
		return // no guest was called
	}
	ctx := context.WithValue(context.Background(), traceIDKey{}, t.idOf(r.ID))
	due, end := r.Started.Add(-time.Duration(r.Queued)), r.Started.Add(time.Duration(r.Took))
	ctx, root := t.tracer.Start(ctx, "reconcile "+controller, trace.WithTimestamp(due), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(runAttributes(controller, key, r)...))
	if !root.IsRecording() {
		return // the sampler has discarded it
	}
	t.span(ctx, "queue", due, r.Started)
	guest := ctx
	guestEnd := r.Guest.Started.Add(r.Guest.Took)
	if r.Guest.Took > 0 {
		var span trace.Span
		guest, span = t.tracer.Start(ctx, "guest", trace.WithTimestamp(r.Guest.Started), trace.WithAttributes(attribute.Int64("wasmctl.fuel", r.Fuel)))
		span.End(trace.WithTimestamp(guestEnd))
	}
	for i := range r.Operations {
		o := &r.Operations[i]
		switch {
		case o.Started.IsZero(): // answered by the cache, or denied
		case !o.Started.After(guestEnd):
			t.op(guest, o)
		default:
			t.op(ctx, o)
		}
	}
	if r.Result == history.ResultFailed {
		root.SetStatus(codes.Error, r.Error)
	}
	root.End(trace.WithTimestamp(end))
}

func (t *Tracing) span(ctx context.Context, name string, start, end time.Time) {
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(start))
	span.End(trace.WithTimestamp(end))
}

// op writes the span of one request.
func (t *Tracing) op(ctx context.Context, o *history.Operation) {
	_, span := t.tracer.Start(ctx, o.Name+" "+o.Resource, trace.WithTimestamp(o.Started), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("k8s.resource", o.Resource), attribute.String("k8s.subresource", o.Subresource), attribute.String("k8s.object", o.Object.String()),
			attribute.String("wasmctl.effect", string(o.Effect)), attribute.Bool("wasmctl.dry_run", o.DryRun),
		))
	if o.Error != "" {
		span.SetStatus(codes.Error, o.Error)
	}
	span.End(trace.WithTimestamp(o.Started.Add(time.Duration(o.Took))))
}

func runAttributes(controller string, key abi.Key, r *history.Run) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("wasmctl.controller", controller), attribute.String("wasmctl.object", key.String()),
		attribute.String("k8s.namespace.name", key.Namespace), attribute.String("wasmctl.reconcile_id", r.ID),
		attribute.String("wasmctl.trigger", strings.Join(r.Reasons.Texts(), ", ")), attribute.Int("wasmctl.attempt", r.Attempt),
		attribute.Int64("wasmctl.revision", int64(r.Revision)), //nolint:gosec // counts swaps
		attribute.String("wasmctl.action", r.Next.String()), attribute.String("wasmctl.result", string(r.Result)),
	}
	if r.Kind != "" {
		out = append(out, attribute.String("error.type", r.Kind))
	}
	if r.MoreOperations > 0 {
		out = append(out, attribute.Int("wasmctl.operations_left_out", r.MoreOperations))
	}
	return out
}
