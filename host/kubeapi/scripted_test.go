// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/abi"
)

// scripted returns an API with an HTTP server that gives answers that a real API server does not
// give on demand: those of proxies, of pods behind it, and faults.
func scripted(t *testing.T, handler http.HandlerFunc) *API {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client := newClient(t, &rest.Config{Host: server.URL, BearerToken: "secret"})
	api := offlineAPI(t, everything())
	api.cfg.Client = client
	api.cfg.Logger = slog.New(slog.DiscardHandler)
	return api
}

func answer(contentType string, code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

func TestCall_AnswersThatAreNoObjects(t *testing.T) {
	get := msg(t, map[string]any{"apiVersion": "v1", "kind": "Pod", "namespace": "a", "name": "x", "subresource": "log"})
	const js = "application/json"
	tests := []struct {
		name    string
		handler http.HandlerFunc
		status  abi.Status
		message string
	}{
		{"text", answer("text/plain", 200, "hello"), abi.StatusBadRequest, `subresource: log of Pod answers with "text/plain"`},
		{"no JSON", answer(js, 200, "hello"), abi.StatusInternal, "answer of the API server"},
		{"half of a JSON", answer(js, 200, `{"a":`), abi.StatusInternal, "answer of the API server"},
		{"an array", answer(js, 200, `[]`), abi.StatusInternal, "answer of the API server"},
		{"too deep", answer(js, 200, strings.Repeat(`{"a":`, 200)+"1"+strings.Repeat("}", 200)), abi.StatusTooLarge, "nests deeper"},
		{"a proxy's page", answer("text/html", 502, "<html>bad gateway"), 502, "<html>bad gateway"},
		{"a status without a code", answer(js, 418, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"odd"}`), 500, "odd"},
		{"a failure that is no status", answer(js, 409, `{"kind":"ConfigMap","apiVersion":"v1"}`), 409, ""},
		{"a redirect", answer("text/plain", 302, "over there"), 302, ""},
		{"cut in the middle", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", js)
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"a":`))
		}, abi.StatusUnavailable, "retry later"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := scripted(t, tt.handler).Call(t.Context(), abi.OpAPIGet, get)
			body := statusBody(t, got)
			if got.Status != tt.status || !strings.Contains(fmt.Sprint(body["message"]), tt.message) {
				t.Errorf("%v: %v\nwant %v: ...%s...", got.Status, body["message"], tt.status, tt.message)
			}
		})
	}
}

// TestCall_FollowsNoRedirect: a pod behind the API server's proxy cannot redirect our credentials.
func TestCall_FollowsNoRedirect(t *testing.T) {
	var caught atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { caught.Add(1) }))
	defer thief.Close()
	api := scripted(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, http.StatusFound) })
	got := api.Call(t.Context(), abi.OpAPIGet, msg(t, map[string]any{
		"apiVersion": "v1", "kind": "Pod", "namespace": "a", "name": "x", "subresource": "proxy",
	}))
	if got.Status != http.StatusFound || caught.Load() != 0 {
		t.Errorf("%v, %d requests at the other server", got.Status, caught.Load())
	}
}

// TestCall_SendsWritesOnce: a write is sent again only if the API server reports that it did
// nothing.
func TestCall_SendsWritesOnce(t *testing.T) {
	create := msg(t, map[string]any{"object": map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"},
	}})
	var sent atomic.Int32
	cut := scripted(t, func(http.ResponseWriter, *http.Request) { sent.Add(1); panic(http.ErrAbortHandler) })
	if got := cut.Call(t.Context(), abi.OpAPICreate, create); got.Status != abi.StatusUnavailable || sent.Load() != 1 {
		t.Errorf("connection cut: %v after %d requests", got.Status, sent.Load())
	}
	sent.Store(0)
	busy := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		if sent.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		body := make([]byte, r.ContentLength)
		if _, err := r.Body.Read(body); !strings.Contains(string(body), "ConfigMap") {
			t.Errorf("the second request has the body %q, %v", body, err)
		}
		answer("application/json", 201, `{"kind":"ConfigMap"}`)(w, r)
	})
	if got := busy.Call(t.Context(), abi.OpAPICreate, create); got.Status != abi.StatusOK || sent.Load() != 2 {
		t.Errorf("server busy: %v after %d requests", got.Status, sent.Load())
	}
}

// TestCall_SendsReadsAgain: a read survives a broken connection.
func TestCall_SendsReadsAgain(t *testing.T) {
	var sent atomic.Int32
	api := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		if sent.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		answer("application/json", 200, `{"kind":"ConfigMap"}`)(w, r)
	})
	got := api.Call(t.Context(), abi.OpAPIGet, msg(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x"}))
	if got.Status != abi.StatusOK || sent.Load() != 2 {
		t.Errorf("%v after %d requests", got.Status, sent.Load())
	}
}

// TestCall_SaysEverythingOnTheWire compares the HTTP request with the guest's request, key by key.
func TestCall_SaysEverythingOnTheWire(t *testing.T) {
	var line, contentType string
	api := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, max(r.ContentLength, 0))
		_, _ = r.Body.Read(body)
		line, contentType = r.Method+" "+r.URL.String()+" "+string(body), r.Header.Get("Content-Type")
		answer("application/json", 200, `{"kind":"X"}`)(w, r)
	})
	cm := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"}}
	const cmJSON = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"a"}}`
	ref := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "x"}
	tests := []struct {
		op         abi.Op
		req        map[string]any
		line, kind string
	}{
		{abi.OpAPIGet, with(ref, "resourceVersion", "7"), "GET /api/v1/namespaces/a/configmaps/x?resourceVersion=7 ", ""},
		{
			abi.OpAPIList,
			map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": "a=b", "fieldSelector": "c=d", "limit": 5, "continue": "e",
				"resourceVersion": "7", "resourceVersionMatch": "Exact",
			},
			"GET /apis/apps/v1/deployments?continue=e&fieldSelector=c%3Dd&labelSelector=a%3Db&limit=5&resourceVersion=7&resourceVersionMatch=Exact ", "",
		},
		{
			abi.OpAPICreate,
			map[string]any{"object": cm, "dryRun": true, "fieldValidation": "Strict"},
			"POST /api/v1/namespaces/a/configmaps?dryRun=All&fieldManager=wasmctl%2Ftest&fieldValidation=Strict " + cmJSON, "application/json",
		},
		{
			abi.OpAPIUpdate,
			map[string]any{"object": cm, "subresource": "status", "fieldManager": "me"},
			"PUT /api/v1/namespaces/a/configmaps/x/status?fieldManager=me " + cmJSON, "application/json",
		},
		{
			abi.OpAPIPatch, with(ref, "patchType", "json", "patch", []any{}, "preconditions", map[string]any{"uid": "u"}),
			`PATCH /api/v1/namespaces/a/configmaps/x?fieldManager=wasmctl%2Ftest [{"op":"add","path":"/metadata/uid","value":"u"}]`, "application/json-patch+json",
		},
		{
			abi.OpAPIPatch, with(ref, "patchType", "merge", "patch", map[string]any{}),
			`PATCH /api/v1/namespaces/a/configmaps/x?fieldManager=wasmctl%2Ftest {}`, "application/merge-patch+json",
		},
		{
			abi.OpAPIPatch, with(ref, "patchType", "strategic", "patch", map[string]any{}),
			`PATCH /api/v1/namespaces/a/configmaps/x?fieldManager=wasmctl%2Ftest {}`, "application/strategic-merge-patch+json",
		},
		{
			abi.OpAPIApply,
			map[string]any{"object": cm, "force": true},
			"PATCH /api/v1/namespaces/a/configmaps/x?fieldManager=wasmctl%2Ftest&force=true " + cmJSON, "application/apply-patch+yaml",
		},
		{
			abi.OpAPIDelete, with(ref, "dryRun", true, "propagationPolicy", "Foreground", "gracePeriodSeconds", 0, "preconditions", map[string]any{"uid": "u", "resourceVersion": "7"}),
			`DELETE /api/v1/namespaces/a/configmaps/x {"apiVersion":"v1","dryRun":["All"],"gracePeriodSeconds":0,"kind":"DeleteOptions",` +
				`"preconditions":{"resourceVersion":"7","uid":"u"},"propagationPolicy":"Foreground"}`, "application/json",
		},
	}
	for _, tt := range tests {
		if got := api.Call(t.Context(), tt.op, msg(t, tt.req)); got.Status != abi.StatusOK {
			t.Errorf("%s: %v: %v", tt.op, got.Status, statusBody(t, got))
		}
		if line != tt.line || contentType != tt.kind {
			t.Errorf("%s\ngot  %s (%s)\nwant %s (%s)", tt.op, line, contentType, tt.line, tt.kind)
		}
	}
}
