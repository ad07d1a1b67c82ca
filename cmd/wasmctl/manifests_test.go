// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"
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

// TestServeArgs_MeanTheSameToServe: each flag of wasmctl serve that an installation takes has the same value in the
// pod, and those that it does not take exist.
func TestServeArgs_MeanTheSameToServe(t *testing.T) {
	install, given := &cobra.Command{}, &manifestsOptions{}
	given.bindServe(install)
	samples := map[string]string{"bool": "false", "count": "2", "int": "7", "duration": "7s", "string": "x", "stringArray": "a b", "stringSlice": "a,b"}
	for _, flag := range given.passed {
		value, ok := samples[flag.Value.Type()]
		if !ok {
			value = samples["string"]
		}
		if err := install.Flags().Set(flag.Name, value); err != nil {
			t.Error(err)
		}
	}
	serve, got := &cobra.Command{}, &serveOptions{}
	got.bind(serve)
	args := given.serveArgs()
	if err := serve.Flags().Parse(args); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	for _, flag := range given.passed {
		if got := serve.Flags().Lookup(flag.Name); flag.Name != "share" && flag.Name != "registry-allow" && got.Value.String() != flag.Value.String() {
			t.Errorf("--%s is %q in the pod, want %q", flag.Name, got.Value, flag.Value)
		}
	}
	for _, name := range ofPod {
		if serve.Flags().Lookup(name) == nil {
			t.Errorf("wasmctl serve has no flag --%s", name)
		}
	}
	if len(args) < 20 {
		t.Errorf("only %q are taken", args)
	}
}

// TestInstall_TakesTheFlagsOfServe: they are checked at once, and not only in the pod.
func TestInstall_TakesTheFlagsOfServe(t *testing.T) {
	for line, want := range map[string]string{
		"manifests --serve --max-cache 1Gi --isolate --isolate-namespaces a,b": "        - --max-cache=1Gi\n        - --isolate=controller\n        - --isolate-namespaces=a\n        - --isolate-namespaces=b\n",
		"install --dry-run --registry-private=false":                           "        - --registry-private=false\n",
		"install --dry-run --max-cache x":                                      `--max-cache "x": want a size`,
		"install --dry-run --tenant-memory x":                                  `--tenant-memory "x"`,
		"manifests -f none.yaml --max-cache 1Gi":                               "--max-cache needs --serve",
		"manifests -f none.yaml --share objects":                               "--share needs --serve",
	} {
		if got := says(t, line); !strings.Contains(got, want) {
			t.Errorf("%s: %.300s", line, got)
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
