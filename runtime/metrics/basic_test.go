// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// maxSeries is the number of series of a controller that works well, as docs/metrics.md states it.
const maxSeries = 60

// busy returns a Registry with a controller that has made runs of all usual kinds.
func busy(t *testing.T) *metrics.Registry {
	t.Helper()
	r := metrics.New(metrics.Config{})
	c := add(t, r, "web", metrics.Stats{
		Stats: runner.Stats{Ready: 3, Waiting: 2, Started: 9, Received: 12, Requeued: 3}, Revision: 1, Digest: "d", States: map[string]int{"live": 1}, Instances: 2, Image: true,
		Synced: true, Events: map[string]uint64{"recorded": 3}, Recycled: map[string]uint64{"instance_calls": 1},
	})
	for i, reason := range []abi.ReasonType{abi.ReasonListed, abi.ReasonObjectUpdated, abi.ReasonRelated, abi.ReasonRequeue} {
		c.Started(time.Millisecond)
		c.Called(abi.ExportReconcile, time.Millisecond, "")
		c.HostCall(abi.OpAPIGet, abi.StatusOK, time.Millisecond)
		c.HostCall(abi.OpAPIGet, 404, time.Millisecond)
		c.HostCall(abi.OpAPIApply, abi.StatusOK, time.Millisecond)
		c.Ran(&metrics.Run{Reason: reason, Requeue: i%2 == 0, After: time.Duration(i) * time.Second, Took: 7 * time.Millisecond})
		c.Ended(time.Millisecond)
	}
	return r
}

// TestHandler_HasFewSeriesUnlessAskedForAll: scrapes have a bounded number of series for each controller, and those of a
// full scrape have all of them with the same values.
func TestHandler_HasFewSeriesUnlessAskedForAll(t *testing.T) {
	r := busy(t)
	full := map[string]string{}
	for _, line := range scrape(t, r, "") {
		if name, value, ok := strings.Cut(line, "} "); ok {
			full[name] = value
		}
	}
	n := 0
	for _, line := range scrapeOf(t, r, "/metrics", "") {
		name, value, ok := strings.Cut(line, "} ")
		if !ok || !strings.Contains(line, `controller="web"`) {
			continue
		}
		n++
		if full[name] != value {
			t.Errorf("%s: %s, and in a full scrape %q", name, value, full[name])
		}
	}
	if n > maxSeries || n < maxSeries/2 || len(full) < 4*n {
		t.Errorf("%d series of a controller, and %d in a full scrape: want at most %d, and much more", n, len(full), maxSeries)
	}
	lines := scrapeOf(t, r, "/metrics", "")
	want(t, lines, map[string]string{
		`controller_runtime_reconcile_time_seconds_bucket{controller="web",le="0.01"}`:        "4",
		`controller_runtime_reconcile_time_seconds_bucket{controller="web",le="+Inf"}`:        "4",
		`controller_runtime_reconcile_time_seconds_bucket{controller="web",le="0.025"}`:       "",
		`workqueue_queue_duration_seconds_bucket{controller="web",name="web",le="10"}`:        "4",
		`controller_runtime_reconcile_errors_total{controller="web"}`:                         "0",
		`wasmctl_limit_hits_total{controller="web",limit="fuel"}`:                             "",
		`wasmctl_guest_call_duration_seconds_count{controller="web",hook="reconcile"}`:        "",
		`wasmctl_host_calls_total{controller="web",op="api_get",status="404"}`:                "4",
		`controller_runtime_reconcile_total{controller="web",result="error"}`:                 "",
		`controller_runtime_reconcile_total{controller="web",result="success"}`:               "2",
		`wasmctl_guest_call_failures_total{controller="web",hook="reconcile",kind="timeout"}`: "",
	})
	for _, d := range metrics.Descriptions() {
		if d.Full && slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, d.Name) }) {
			t.Errorf("%s is for full scrapes only", d.Name)
		}
	}
}

// TestHandler_RefusesAnUnknownDetail: a typing error in the configuration of Prometheus is an error of the scrape.
func TestHandler_RefusesAnUnknownDetail(t *testing.T) {
	w := httptest.NewRecorder()
	metrics.New(metrics.Config{}).Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics?detail=all", nil))
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "want basic or full") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
