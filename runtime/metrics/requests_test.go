// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/runtime/metrics"
)

// TestRequests_CountsRetries uses client-go with a server that requests a retry: requests are counted by method, host
// and status, but not by path.
func TestRequests_CountsRetries(t *testing.T) {
	r := metrics.New(metrics.Config{})
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"secret-name"}}`)) // the client tells
	}))
	t.Cleanup(server.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if _, err := client.Resource(gvr).Namespace("default").Get(t.Context(), "secret-name", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	lines := scrape(t, r, "")
	host := strings.TrimPrefix(server.URL, "http://")
	want(t, lines, map[string]string{
		`rest_client_requests_total{code="200",host="` + host + `",method="GET"}`:               "1",
		`rest_client_requests_total{code="429",host="` + host + `",method="GET"}`:               "1",
		`rest_client_request_retries_total{code="200",host="` + host + `",verb="GET"}`:          "1",
		`rest_client_response_size_bytes_bucket{host="` + host + `",verb="GET",le="256"}`:       "1",
		`rest_client_request_duration_seconds_bucket{host="` + host + `",verb="GET",le="+Inf"}`: "1",
	})
	if text := strings.Join(lines, "\n"); strings.Contains(text, "secret-name") {
		t.Error("a label has the name of an object")
	}
}
