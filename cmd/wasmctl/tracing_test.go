package main

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// receiver is an OTLP receiver: it decodes what it is sent.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	spans    []*otlp.Span      // guarded by mu
	resource map[string]string // guarded by mu
	bad      []string          // guarded by mu
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{resource: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var msg collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &msg)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || req.URL.Path != tracesPath || req.Header.Get("Content-Type") != "application/x-protobuf" {
		r.bad = append(r.bad, req.URL.Path+" "+req.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, rs := range msg.GetResourceSpans() {
		for _, a := range rs.GetResource().GetAttributes() {
			r.resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, ss := range rs.GetScopeSpans() {
			r.spans = append(r.spans, ss.GetSpans()...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// traces returns the spans by trace and name.
func (r *receiver) traces() map[string]map[string]*otlp.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]map[string]*otlp.Span{}
	for _, s := range r.spans {
		id := hex.EncodeToString(s.GetTraceId())
		if out[id] == nil {
			out[id] = map[string]*otlp.Span{}
		}
		out[id][s.GetName()] = s
	}
	return out
}

func attributeOf(s *otlp.Span, key string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == key {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}

// TestTracing_OneTraceForEachRun: a real OTLP receiver gets a span for each run,
// with its trigger, and below it the wait, the guest and each request; the id is
// in the log.
func TestTracing_OneTraceForEachRun(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	f, socket := newFleet(t, devclustertest.Shared(t)), newSocket(t)
	f.put(t.Context(), "a", app{image: "i:1"})
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + r.URL, "OTEL_RESOURCE_ATTRIBUTES=team=shop", "OTEL_BSP_SCHEDULE_DELAY=100"}
	c := f.startEnv(env, "--kubeconfig", f.cluster.Kubeconfig(), "--socket", socket)
	f.confirm()
	var line struct {
		TraceID string `json:"trace_id"`
	}
	if err := json.Unmarshal([]byte(c.wantLine(`"msg":"reconciled"`, `"object":"`+f.ns+`/a"`, `"trace_id"`)), &line); err != nil {
		t.Fatal(err)
	}
	runs := f.explained(socket, "a").Runs
	first := runs[len(runs)-1]
	var spans map[string]*otlp.Span
	until(t, "the trace arrives", func() bool {
		spans = r.traces()[first.TraceID]
		return spans["reconcile webapp"] != nil
	})
	root, queue, guest := spans["reconcile webapp"], spans["queue"], spans["guest"]
	apply, status := spans["api_apply deployments.apps"], spans["api_apply webapps.examples.wasmctl.dev"]
	if queue == nil || guest == nil || apply == nil || status == nil {
		t.Fatalf("spans: %v", spans)
	}
	until(t, "the trace of the log arrives", func() bool { return r.traces()[line.TraceID] != nil })
	for name, want := range map[string]string{
		"wasmctl.controller": "webapp", "wasmctl.object": f.ns + "/a", "wasmctl.reconcile_id": first.ID,
		"wasmctl.trigger": strings.Join(first.Reasons, ", "), "wasmctl.result": "succeeded", "k8s.namespace.name": f.ns,
	} {
		if got := attributeOf(root, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, s := range map[string]*otlp.Span{"queue": queue, "guest": guest, "apply": apply, "status": status} {
		if string(s.GetParentSpanId()) != string(root.GetSpanId()) {
			t.Errorf("%s is not below the run", name)
		}
		if s.GetStartTimeUnixNano() < root.GetStartTimeUnixNano() || s.GetEndTimeUnixNano() > root.GetEndTimeUnixNano() {
			t.Errorf("%s is not within the run", name)
		}
	}
	if got := attributeOf(apply, "wasmctl.effect"); got != "created" {
		t.Errorf("the Deployment was %q", got)
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bad) > 0 || r.resource["service.name"] != "wasmctl" || r.resource["team"] != "shop" {
		t.Errorf("refused %v; resource %v", r.bad, r.resource)
	}
}

// A request of the guest's is below its call, one of what it declared beside it;
// a failure is one of the span.
func TestTracing_RequestsAreBelowWhoAsked(t *testing.T) {
	r := newReceiver(t)
	tr, err := newTracing(t.Context(), r.URL, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	at := func(ms int) time.Time { return time.Unix(1, 0).Add(time.Duration(ms) * time.Millisecond) }
	op := func(resource string, ms int) history.Op {
		return history.Op{Name: "api_get", Resource: resource, Started: at(ms), Took: time.Millisecond}
	}
	tr.write("web", abi.Key{Name: "a"}, &history.Run{
		ID: "1", Started: at(10), Queued: 5 * time.Millisecond, Took: 20 * time.Millisecond, GuestStarted: at(11), GuestTook: 9 * time.Millisecond,
		Ops: []history.Op{op("inside", 12), op("after", 25), {Name: "cache_get", Resource: "nothing"}}, Failed: true, Kind: "trap", Error: "unreachable",
	})
	tr.write("web", abi.Key{Name: "b"}, &history.Run{Error: applier.ErrObjectNotFound.Error()})
	if err := tr.close(); err != nil {
		t.Fatal(err)
	}
	all := r.traces()
	spans := all[tr.traceID("1")]
	if len(all) != 1 || len(spans) != 5 {
		t.Fatalf("%d traces, spans %v", len(all), spans)
	}
	root, guest := spans["reconcile web"], spans["guest"]
	if string(spans["api_get inside"].GetParentSpanId()) != string(guest.GetSpanId()) || string(spans["api_get after"].GetParentSpanId()) != string(root.GetSpanId()) {
		t.Error("a request is not below who asked")
	}
	if root.GetStatus().GetCode() != otlp.Status_STATUS_CODE_ERROR || root.GetStatus().GetMessage() != "unreachable" || attributeOf(root, "error.type") != "trap" {
		t.Errorf("%v", root)
	}
	if got := root.GetStartTimeUnixNano(); got != uint64(at(5).UnixNano()) { //nolint:gosec // a time
		t.Errorf("the run begins at %d", got)
	}
}

func TestTracing_IsOffUnlessItIsConfigured(t *testing.T) {
	discard := slog.New(slog.DiscardHandler)
	for name, env := range map[string]map[string]string{
		"nothing":  {},
		"disabled": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_SDK_DISABLED": "true"},
		"none":     {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range env {
				t.Setenv(k, v)
			}
			if tr, err := newTracing(t.Context(), "", discard); tr != nil || err != nil || tr.close() != nil {
				t.Errorf("%v, %v", tr, err)
			}
		})
	}
	for _, bad := range []string{"localhost:4318", "ftp://x", "http://", "\x00"} {
		if _, err := newTracing(t.Context(), bad, discard); err == nil || !strings.Contains(err.Error(), "--otlp-endpoint") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for in, want := range map[string]string{"http://c:4318": "http://c:4318/v1/traces", "https://c/": "https://c/v1/traces", "http://c/x": "http://c/x"} {
		if got, err := tracesURL(in); got != want || err != nil {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}

// BenchmarkRecord is what the history costs a run that does nothing, as the
// session calls it; without tracing.
func BenchmarkRecord(b *testing.B) {
	s := &session{process: &process{opts: &processOptions{}}, opts: &controllerOptions{historyBytes: 1 << 20}, name: "web"}
	s.record()
	req := &abi.Request{ID: "0123456789ab-1", Key: abi.Key{Namespace: "default", Name: "a"}, Object: make([]byte, 4000)}
	out := &applier.Outcome{ID: req.ID, Key: req.Key, Attempt: 1, Generation: 1, Duration: time.Microsecond}
	b.ReportAllocs()
	for b.Loop() {
		out.Started = time.Now()
		s.began(1, req)
		s.recordEnd(out)
	}
}
