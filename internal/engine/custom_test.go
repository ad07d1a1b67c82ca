// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// TestMetrics_OfTheModuleAreServed: /metrics has the metrics that a module reports; they
// survive a swap, and runs of a shadow do not count.
func TestMetrics_OfTheModuleAreServed(t *testing.T) {
	opts := swapOptions()
	opts.Name = "reporter"
	opts.shared.Metrics = metrics.New(metrics.Config{})
	w := newSwapping(t, wasm.Reports, opts)
	w.putAll(3, 1)
	runs := func() (n string) {
		for line := range strings.Lines(scraped(t, opts.shared.Metrics.Handler())) {
			if rest, ok := strings.CutPrefix(line, `wasmctl_custom_runs_total{controller="reporter"} `); ok {
				n = strings.TrimSpace(rest)
			}
		}
		return n
	}
	enginetest.Until(t, "three runs are counted", func() bool { return runs() == "3" })
	if text := scraped(t, opts.shared.Metrics.Handler()); !strings.Contains(text, `wasmctl_custom_request_bytes{controller="reporter"} `) {
		t.Error("the gauge is not served")
	}
	if _, sum := w.shadow(enginetest.Numbered(wasm.Reports, 1), 3); sum.Runs != 3 || sum.Different != 0 {
		t.Errorf("shadow: %+v", sum)
	}
	if got := runs(); got != "6" { // of the live module
		t.Errorf("after a shadow %s runs are counted, want 6", got)
	}
	w.mustSwap(enginetest.Numbered(wasm.Reports, 2))
	enginetest.Until(t, "the new module counts on", func() bool { return runs() == "9" })
}

func TestMetrics_OfTheModuleSucceedWhereNothingIsServed(t *testing.T) {
	w := newSwapping(t, wasm.Reports, swapOptions()) // it traps if metric fails
	w.putAll(1, 1)
	enginetest.Until(t, "the object has run", func() bool { return w.engine.Module.Fuel() > 0 })
	if n := w.engine.Module.Recycled()["trap"]; n != 0 {
		t.Errorf("%d runs trapped", n)
	}
}

func scraped(t *testing.T, h http.Handler) string {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("scrape: %d\n%s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}
