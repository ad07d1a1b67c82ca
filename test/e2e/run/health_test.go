// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestHealth_IsAnsweredThoughEveryGuestHangs: probes and metrics are answered while
// every worker runs a guest that spins.
func TestHealth_IsAnsweredThoughEveryGuestHangs(t *testing.T) {
	ns, kubeconfig := e2e.NewConfigMaps(t)
	module := filepath.Join(t.TempDir(), "spins.wasm")
	if err := os.WriteFile(module, enginetest.Worse(enginetest.Spins, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	c := e2e.Run(t, module, "--name", "spins", "--for", "cm", "-n", ns, "--concurrency", "2", "--timeout", "10m", "--drain-timeout", "1ms",
		"--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0", "--kubeconfig", kubeconfig)
	health, metrics := e2e.Served(t, c, "/livez"), e2e.Served(t, c, "/metrics")
	busy := func() bool {
		_, text := e2e.Fetch(t, metrics+"/metrics")
		return strings.Contains(text, `controller_runtime_active_workers{controller="spins"} 2`)
	}
	enginetest.Until(t, "both workers are busy", busy)
	var slowest time.Duration
	for range 20 {
		for _, path := range []string{"/livez?verbose", "/readyz?verbose", "/readyz/synced-spins", "/readyz/module-spins"} {
			startedAt := time.Now()
			if code, text := e2e.Fetch(t, health+path); code != http.StatusOK {
				t.Errorf("%s: %d %s", path, code, text)
			}
			slowest = max(slowest, time.Since(startedAt))
		}
	}
	t.Logf("the slowest of 80 answers took %v", slowest)
	if !busy() {
		t.Error("the guests no longer hang")
	}
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitForced)
}

// TestHealth_ReadyOnceSynced: the probes are answered from the start. While a kind is
// missing, readyz names it, and livez succeeds.
func TestHealth_ReadyOnceSynced(t *testing.T) {
	cluster := devclustertest.Shared(t)
	group := devclustertest.Namespace(t, cluster) + ".wasmctl.dev"
	c := e2e.Run(t, e2e.Guests+"empty.wasm", "--name", "waits", "--for", "widgets."+group, "--health-address", "127.0.0.1:0", "--kubeconfig", cluster.Kubeconfig())
	c.WantLine("waiting for CRD widgets." + group)
	url := e2e.Served(t, c, "/readyz")
	want := func(path string, code int, part string) {
		t.Helper()
		if got, text := e2e.Fetch(t, url+path); got != code || !strings.Contains(text, part) {
			t.Errorf("%s: %d %s; want %d, %s", path, got, text, code, part)
		}
	}
	want("/livez?verbose", http.StatusOK, "[+]watches ok")
	want("/readyz", http.StatusInternalServerError, "[-]started failed: reason withheld\n")
	want("/readyz/started", http.StatusInternalServerError, "internal server error: loading modules")
	want("/metrics", http.StatusNotFound, "")
	want("/debug/pprof/", http.StatusNotFound, "")
	devclustertest.Apply(t, cluster, []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.`+group+`}
spec:
  group: `+group+`
  scope: Cluster
  names: {plural: widgets, singular: widget, kind: Widget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`))
	enginetest.Until(t, "it is ready", func() bool { code, _ := e2e.Fetch(t, url+"/readyz"); return code == http.StatusOK })
	want("/readyz?verbose", http.StatusOK, "[+]synced-waits ok\n[+]module-waits ok\nreadyz check passed\n")
	c.Signal(syscall.SIGTERM)
	c.WantExit(e2e.ExitOK)
}

// TestHTTP_AddressInUseIsAnError: it has its own exit code, and is found before the
// module is read.
func TestHTTP_AddressInUseIsAnError(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // of a test
	for _, flag := range []string{"--metrics-address", "--health-address"} {
		c := e2e.Run(t, "not-there.wasm", flag, l.Addr().String())
		c.WantExit(e2e.ExitListen)
		if text := c.Text(); !strings.Contains(text, flag+` "`+l.Addr().String()+`": cannot listen: `) || !strings.Contains(text, "choose another address") {
			t.Errorf("got %s", text)
		}
	}
}
