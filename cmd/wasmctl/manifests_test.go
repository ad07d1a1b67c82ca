// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/internal/memapi"
)

// TestManifests_NotesAMissingPrometheusOperator: kubectl apply would fail for the PodMonitor.
func TestManifests_NotesAMissingPrometheusOperator(t *testing.T) {
	podMonitor := memapi.GuessKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "PodMonitor"}, true)
	for _, kinds := range [][]memapi.Kind{nil, {podMonitor}} {
		api := memapi.New(memapi.Config{Kinds: kinds})
		kubeconfig := kubeconfigOf(t, api)
		out := says(t, "manifests --serve --pod-monitor --kubeconfig "+kubeconfig)
		if noted := strings.Contains(out, "note: the cluster has no PodMonitors"); noted != (kinds == nil) || !strings.Contains(out, "kind: PodMonitor") {
			t.Errorf("with %d kinds: noted: %t:\n%.300s", len(kinds), noted, out)
		}
	}
}

// kubeconfigOf serves an API server in memory until the test ends, and returns a kubeconfig file whose
// namespace is t01.
func kubeconfigOf(t *testing.T, api *memapi.Server) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res, err := api.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body) // the client may have gone
	}))
	t.Cleanup(server.Close)
	return kubeconfigTo(t, server.URL)
}
