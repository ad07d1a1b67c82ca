// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/metrics"
)

// maxUserBytes bounds the name of a user that is recorded.
const maxUserBytes = 256

// Admitted records the verdict of a revision on a request to the API server, or the error.
func (r *Recorder) Admitted(a *abi.Admission, res *abi.AdmissionResult, revision uint64, started time.Time, err error) {
	v, message := metrics.Allowed, ""
	switch {
	case err != nil:
		v, message = metrics.Undecided, ErrorText(err)
	case res.Denied != nil:
		v, message = metrics.Denied, res.Denied.Text()
	case res.Object != nil:
		v = metrics.Changed
	}
	if c := r.cfg.Metrics; c != nil {
		c.Admitted(v)
	}
	if message != "" {
		message = r.shownMessage(a, message)
	}
	if t := &a.Target; message != "" && a.Key.Name != "" && t.Group == r.kind.Group && t.Resource == r.kind.Resource {
		r.History.Deny(a.Key, &history.Denial{
			ID: a.ID, Time: started, User: text.Clip(a.User.Name, maxUserBytes), Operation: a.Operation, Subresource: t.Subresource, DryRun: a.DryRun,
			Webhook: a.Webhook, Revision: revision, Failed: err != nil, Message: message,
		})
	}
	if t := r.cfg.Tracing; t != nil {
		t.admission(r.controller, a, v, message, revision, started)
	}
}

// shownMessage returns a message of the module without the values of Secrets. The values of a Secret in
// a request are not known, so nothing is left of a message about it.
func (r *Recorder) shownMessage(a *abi.Admission, message string) string {
	if redact.IsSecret(a.Target.Group, a.Target.Kind) {
		return "(hidden, because the request is about a Secret)"
	}
	return text.Clip(r.Secrets.Text(message), maxErrorBytes)
}

// Denials returns the last denials of requests about an object, without values of Secrets that have
// become known since.
func (r *Recorder) Denials(key abi.Key) []history.Denial {
	list := r.History.Denials(key)
	for i := range list {
		list[i].Message = r.Secrets.Text(list[i].Message)
	}
	return list
}

// admission writes the trace of one judged request. Its trace ID is derived from the uid of the request.
func (t *Tracing) admission(controller string, a *abi.Admission, v metrics.Verdict, message string, revision uint64, started time.Time) {
	ctx := context.WithValue(context.Background(), traceIDKey{}, t.idOf(a.ID))
	_, span := t.tracer.Start(ctx, "admit "+controller, trace.WithTimestamp(started), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("wasmctl.controller", controller), attribute.String("wasmctl.object", a.Key.String()), attribute.String("wasmctl.webhook", a.Webhook),
		attribute.String("wasmctl.admission_id", a.ID), attribute.String("wasmctl.operation", string(a.Operation)), attribute.String("wasmctl.verdict", string(v)),
		attribute.String("k8s.resource", a.Target.Resource), attribute.Int64("wasmctl.revision", int64(revision)), //nolint:gosec // counts swaps
	))
	if v == metrics.Undecided {
		span.SetStatus(codes.Error, message)
	}
	span.End()
}
