// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// receiver is an OTLP receiver that decodes its requests.
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
	if err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" {
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

// TestTracing_OneTraceForEachRun: a real OTLP receiver gets a span for each run, with
// its trigger, and below it the wait, the guest and each request. The log has the trace
// ID.
func TestTracing_OneTraceForEachRun(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	f, socket := e2e.NewFleet(t, devclustertest.Shared(t)), e2e.NewSocket(t)
	f.Put(t.Context(), "a", e2e.App{Image: "i:1"})
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + r.URL, "OTEL_RESOURCE_ATTRIBUTES=team=shop", "OTEL_BSP_SCHEDULE_DELAY=100"}
	c := f.StartEnv(env, "--kubeconfig", f.Cluster.Kubeconfig(), "--socket", socket)
	f.Confirm()
	var line struct {
		TraceID string `json:"trace_id"`
	}
	if err := json.Unmarshal([]byte(c.WantLine(`"msg":"reconciled"`, `"object":"`+f.Ns+`/a"`, `"trace_id"`)), &line); err != nil {
		t.Fatal(err)
	}
	runs := explained(f, socket, "a").Runs
	first := runs[len(runs)-1]
	var spans map[string]*otlp.Span
	enginetest.Until(t, "the trace arrives", func() bool {
		spans = r.traces()[first.TraceID]
		return spans["reconcile webapp"] != nil
	})
	root, queue, guest := spans["reconcile webapp"], spans["queue"], spans["guest"]
	apply, status := spans["api_apply deployments.apps"], spans["api_apply webapps.examples.wasmctl.dev"]
	if queue == nil || guest == nil || apply == nil || status == nil {
		t.Fatalf("spans: %v", spans)
	}
	enginetest.Until(t, "the trace of the log arrives", func() bool { return r.traces()[line.TraceID] != nil })
	for name, want := range map[string]string{
		"wasmctl.controller": "webapp", "wasmctl.object": f.Ns + "/a", "wasmctl.reconcile_id": first.ID,
		"wasmctl.trigger": strings.Join(first.Reasons.Texts(), ", "), "wasmctl.result": "succeeded", "k8s.namespace.name": f.Ns,
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
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bad) > 0 || r.resource["service.name"] != "wasmctl" || r.resource["team"] != "shop" {
		t.Errorf("refused %v; resource %v", r.bad, r.resource)
	}
}
