// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"strings"
	"testing"
)

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
			if exporter, err := newExporter(t.Context(), "", discard); exporter != nil || err != nil {
				t.Errorf("%v, %v", exporter, err)
			}
		})
	}
	for _, bad := range []string{"localhost:4318", "ftp://x", "http://", "\x00"} {
		if _, err := newExporter(t.Context(), bad, discard); err == nil || !strings.Contains(err.Error(), "--otlp-endpoint") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for in, want := range map[string]string{"http://c:4318": "http://c:4318/v1/traces", "https://c/": "https://c/v1/traces", "http://c/x": "http://c/x"} {
		if got, err := tracesURL(in); got != want || err != nil {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}
