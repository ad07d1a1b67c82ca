// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
)

// TestListen_OneServerForEqualAddresses: for equal addresses, there is one server with all paths,
// including profiles with --pprof. It ends when it is stopped.
func TestListen_OneServerForEqualAddresses(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	rt, err := wasmctl.New(&rest.Config{Host: "https://127.0.0.1:1"}, wasmctl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	servers, err := Listen(t.Context(), &flags.HTTP{Metrics: address, Health: address, Pprof: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	stop := servers.Serve(rt)
	for path, part := range map[string]string{
		"/metrics": "wasmctl_build_info{", "/livez": "ok", "/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile",
	} {
		if code, text := fetch(t, "http://"+address+path); code != http.StatusOK || !strings.Contains(text, part) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if code, text := fetch(t, "http://"+address+"/readyz"); code != http.StatusInternalServerError || !strings.Contains(text, "started failed") {
		t.Errorf("before the runtime runs: %d %s", code, text)
	}
	stop()
	if _, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address); err == nil {
		t.Error("something still listens")
	}
}

// fetch returns the status and the body of the answer to a GET.
func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // of a test
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
