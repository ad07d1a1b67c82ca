// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// kept is an exporter that records the spans that it was given when it is shut down.
type kept struct{ *tracetest.InMemoryExporter }

func (kept) Shutdown(context.Context) error { return nil }

func attributeOf(s tracetest.SpanStub, key attribute.Key) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.AsString()
		}
	}
	return ""
}

// A request of the guest is below its call, and a request for a declared object is a
// sibling of the call; a failure is set on the span.
func TestTracing_RequestsAreBelowWhoAsked(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tr, err := NewTracing(kept{exporter}, "test")
	if err != nil {
		t.Fatal(err)
	}
	at := func(ms int) time.Time { return time.Unix(1, 0).Add(time.Duration(ms) * time.Millisecond) }
	op := func(resource string, ms int) history.Operation {
		return history.Operation{Name: "api_get", Resource: resource, Started: at(ms), Took: history.Duration(time.Millisecond)}
	}
	tr.write("web", abi.Key{Name: "a"}, &history.Run{
		ID: "1", Started: at(10), Queued: history.Duration(5 * time.Millisecond), Took: history.Duration(20 * time.Millisecond),
		Guest: history.Call{Started: at(11), Took: 9 * time.Millisecond}, Ending: history.Ending{Result: history.ResultFailed, Kind: "trap", Error: "unreachable"},
		Deeds: history.Deeds{Operations: []history.Operation{op("inside", 12), op("after", 25), {Name: "cache_get", Resource: "nothing"}}},
	})
	tr.write("web", abi.Key{Name: "b"}, &history.Run{Ending: history.Ending{Result: history.ResultSkipped}})
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	traces, spans := map[string]bool{}, map[string]tracetest.SpanStub{}
	for _, s := range exporter.GetSpans() {
		traces[s.SpanContext.TraceID().String()], spans[s.Name] = true, s
	}
	if len(traces) != 1 || !traces[tr.TraceID("1")] || len(spans) != 5 {
		t.Fatalf("%d traces, spans %v", len(traces), spans)
	}
	root, guest := spans["reconcile web"], spans["guest"]
	if spans["api_get inside"].Parent.SpanID() != guest.SpanContext.SpanID() || spans["api_get after"].Parent.SpanID() != root.SpanContext.SpanID() {
		t.Error("a request is not below who asked")
	}
	if root.Status.Code != codes.Error || root.Status.Description != "unreachable" || attributeOf(root, "error.type") != "trap" {
		t.Errorf("%v", root)
	}
	if !root.StartTime.Equal(at(5)) {
		t.Errorf("the run begins at %v", root.StartTime)
	}
}

func TestTracing_NoneClosesToo(t *testing.T) {
	var none *Tracing
	if err := none.Close(); err != nil || none.TraceIDs() != nil {
		t.Error(err)
	}
}

// BenchmarkRecord measures the cost of a Recorder for a run that does nothing, without
// tracing and metrics.
func BenchmarkRecord(b *testing.B) {
	r := NewRecorder(Config{History: 1 << 20})
	r.For("web", kinds.Kind{})
	req := &abi.Request{ID: "0123456789ab-1", Key: abi.Key{Namespace: "default", Name: "a"}, Object: make([]byte, 4000)}
	out := &applier.Outcome{ID: req.ID, Key: req.Key, Attempt: 1, Revision: 1, Duration: time.Microsecond}
	b.ReportAllocs()
	for b.Loop() {
		out.Started = time.Now()
		r.Started(1, req)
		r.Ended(out)
	}
}
