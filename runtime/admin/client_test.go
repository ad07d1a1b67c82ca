// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestClient_BoundsAnswers: a process in another pod cannot make a command use all memory.
func TestClient_BoundsAnswers(t *testing.T) {
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/trigger") {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, err := w.Write([]byte(`{"error":"`))
		for part := []byte(strings.Repeat("x", 1<<16)); err == nil; {
			_, err = w.Write(part)
		}
	}))
	defer endless.Close()
	c := NewClientOver("pod[a/b]", func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", endless.Listener.Addr().String())
	})
	c.most = 1 << 20
	if _, err := c.Status(t.Context()); err == nil || err.Error() != "pod[a/b]: answer: it is larger than 1Mi" {
		t.Errorf("an answer: %v", err)
	}
	if _, err := c.Trigger(t.Context(), "web", nil, false); err == nil {
		t.Error("an error was accepted")
	}
	if err := c.Logs(t.Context(), "web", LogQuery{}, func([]byte) error { return nil }); err == nil {
		t.Error("a line of a log was accepted")
	}
}
