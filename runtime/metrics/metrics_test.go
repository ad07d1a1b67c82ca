// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// add adds a controller with the figures st.
func add(t *testing.T, r *metrics.Registry, name string, st metrics.Stats) *metrics.Controller {
	t.Helper()
	c := metrics.NewController()
	if err := r.Add(name, c, func() metrics.Stats { return st }); err != nil {
		t.Fatal(err)
	}
	return c
}

// scrape returns the lines of a full scrape.
func scrape(t *testing.T, r *metrics.Registry, accept string) []string {
	t.Helper()
	return scrapeOf(t, r, "/metrics?detail=full", accept)
}

func scrapeOf(t *testing.T, r *metrics.Registry, url, accept string) []string {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	req.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, req)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("scrape: %d %v\n%s", w.Code, err, body)
	}
	return strings.Split(string(body), "\n")
}

// value returns the value of a series, and whether it exists.
func value(lines []string, series string) (string, bool) {
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, series+" "); ok {
			return rest, true
		}
	}
	return "", false
}

func want(t *testing.T, lines []string, values map[string]string) {
	t.Helper()
	got := map[string]string{}
	for series := range values {
		got[series], _ = value(lines, series)
	}
	if diff := cmp.Diff(values, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestController_CountsRunsAsControllerRuntimeDoes(t *testing.T) {
	r := metrics.New(metrics.Config{})
	c := add(t, r, "web", metrics.Stats{})
	for _, run := range []metrics.Run{
		{Reason: abi.ReasonListed},
		{Requeue: true, Reason: abi.ReasonRequeue},
		{Requeue: true, After: time.Second, Reason: "Tomorrow's"},
		{Requeue: true, After: time.Second, Kind: abi.FailureTrap}, // an error takes precedence over a requeue
		{Kind: abi.FailureTimeout},
		{Kind: abi.FailureError, Permanent: true},
	} {
		c.Ran(&run)
	}
	want(t, scrape(t, r, ""), map[string]string{
		`controller_runtime_reconcile_total{controller="web",result="success"}`:              "1",
		`controller_runtime_reconcile_total{controller="web",result="requeue"}`:              "1",
		`controller_runtime_reconcile_total{controller="web",result="requeue_after"}`:        "1",
		`controller_runtime_reconcile_total{controller="web",result="error"}`:                "3",
		`controller_runtime_reconcile_errors_total{controller="web"}`:                        "3",
		`controller_runtime_terminal_reconcile_errors_total{controller="web"}`:               "1",
		`controller_runtime_reconcile_panics_total{controller="web"}`:                        "1",
		`controller_runtime_reconcile_timeouts_total{controller="web"}`:                      "1",
		`controller_runtime_reconcile_time_seconds_count{controller="web"}`:                  "6",
		`wasmctl_reconcile_reasons_total{controller="web",reason="Listed"}`:                  "1",
		`wasmctl_reconcile_reasons_total{controller="web",reason="Other"}`:                   "4",
		`wasmctl_reconcile_failures_total{controller="web",kind="error"}`:                    "1",
		`wasmctl_guest_call_duration_seconds_count{controller="web",hook="reconcile"}`:       "",
		`wasmctl_reconcile_reasons_total{controller="web",reason="Tomorrow's"}`:              "",
		`controller_runtime_reconcile_time_seconds_bucket{controller="web",le="0.005"}`:      "6",
		`controller_runtime_reconcile_time_seconds_bucket{controller="web",le="+Inf"}`:       "6",
		`workqueue_queue_duration_seconds_bucket{controller="web",name="web",le="+Inf"}`:     "0",
		`controller_runtime_reconcile_time_seconds_bucket{controller="web",le="0.0050000"}`:  "",
		`workqueue_unfinished_work_seconds{controller="web",name="web"}`:                     "0",
		`workqueue_depth{controller="web",name="web",priority="0"}`:                          "0",
		`workqueue_depth{controller="web",name="web",priority="-100"}`:                       "0",
		`wasmctl_limit_hits_total{controller="web",limit="fuel"}`:                            "0",
		`wasmctl_module_swaps_total{controller="web",result="rolled_back"}`:                  "0",
		`wasmctl_host_calls_total{controller="web",op="api_get",status="OK"}`:                "",
		`wasmctl_reconcile_failures_total{controller="web",kind="of tomorrow"}`:              "",
		`wasmctl_guest_call_failures_total{controller="web",hook="reconcile",kind="trap"}`:   "",
		`controller_runtime_reconcile_total{controller="web",result="requeue_after",le="1"}`: "",
	})
}

func TestController_CountsCallsLimitsSwapsAndOperations(t *testing.T) {
	r := metrics.New(metrics.Config{})
	c := add(t, r, "web", metrics.Stats{
		Limits: map[abi.LimitName]uint64{abi.LimitTimeout: 1, abi.LimitMemoryBudget: 2}, Recycled: map[string]uint64{"trap": 3},
	})
	c.Called(abi.ExportReconcile, 3*time.Microsecond, "")
	c.Called(abi.ExportMap, time.Minute, abi.FailureTimeout)
	c.Called("of tomorrow", 0, "of tomorrow")
	c.Swapped("rolled_back")
	c.Swapped("of tomorrow")
	c.HostCall(abi.OpAPIGet, 404, time.Millisecond)
	c.HostCall(abi.OpCacheGet, abi.StatusOK, 0)
	c.HostCall(abi.OpAPIGet, abi.StatusDenied, 0)
	c.Started(2 * time.Second)
	c.Ended(20 * time.Millisecond)
	want(t, scrape(t, r, ""), map[string]string{
		`wasmctl_guest_call_duration_seconds_bucket{controller="web",hook="reconcile",le="4e-06"}`:    "1",
		`wasmctl_guest_call_duration_seconds_bucket{controller="web",hook="reconcile",le="1e-06"}`:    "0",
		`wasmctl_guest_call_duration_seconds_sum{controller="web",hook="map"}`:                        "60",
		`wasmctl_guest_call_failures_total{controller="web",hook="map",kind="timeout"}`:               "1",
		`wasmctl_guest_call_failures_total{controller="web",hook="other",kind="other"}`:               "1",
		`wasmctl_limit_hits_total{controller="web",limit="timeout"}`:                                  "1",
		`wasmctl_limit_hits_total{controller="web",limit="memory_budget"}`:                            "2",
		`wasmctl_guest_instances_recycled_total{controller="web",reason="trap"}`:                      "3",
		`wasmctl_module_swaps_total{controller="web",result="rolled_back"}`:                           "1",
		`wasmctl_module_swaps_total{controller="web",result="other"}`:                                 "1",
		`wasmctl_host_calls_total{controller="web",op="api_get",status="404"}`:                        "1",
		`wasmctl_host_calls_total{controller="web",op="cache_get",status="OK"}`:                       "1",
		`wasmctl_host_calls_total{controller="web",op="api_get",status="DENIED"}`:                     "1",
		`wasmctl_host_call_duration_seconds_count{controller="web",op="api_get"}`:                     "1",
		`wasmctl_host_call_duration_seconds_count{controller="web",op="cache_get"}`:                   "",
		`workqueue_queue_duration_seconds_sum{controller="web",name="web"}`:                           "2",
		`workqueue_work_duration_seconds_bucket{controller="web",name="web",le="0.1"}`:                "1",
		`workqueue_work_duration_seconds_bucket{controller="web",name="web",le="0.01"}`:               "0",
		`wasmctl_guest_call_duration_seconds_count{controller="web",hook="of tomorrow"}`:              "",
		`controller_runtime_reconcile_time_seconds_sum{controller="web"}`:                             "0",
		`wasmctl_guest_call_failures_total{controller="web",hook="reconcile",kind="timeout"}`:         "0",
		`wasmctl_guest_call_duration_seconds_count{controller="web",hook="` + abi.ExportFilter + `"}`: "",
	})
}

// TestController_SeriesComeAndGo, as required for a change of the configuration.
func TestController_SeriesComeAndGo(t *testing.T) {
	r := metrics.New(metrics.Config{})
	series := func(name string) string {
		return `controller_runtime_reconcile_errors_total{controller="` + name + `"}`
	}
	has := func(name string) bool {
		_, ok := value(scrape(t, r, ""), series(name))
		return ok
	}
	a := add(t, r, "a", metrics.Stats{})
	b := add(t, r, "b", metrics.Stats{})
	if err := r.Add("b", metrics.NewController(), nil); err == nil {
		t.Error("a name was taken twice")
	}
	b.Ran(&metrics.Run{Kind: abi.FailureError})
	r.Remove(b)
	r.Remove(b)
	if !has("a") || has("b") {
		t.Errorf("a: %v, b: %v: want a alone", has("a"), has("b"))
	}
	again := add(t, r, "b", metrics.Stats{})
	r.Remove(b) // that of before
	b.Ran(&metrics.Run{Kind: abi.FailureError})
	want(t, scrape(t, r, ""), map[string]string{series("a"): "0", series("b"): "0"})
	r.Remove(a)
	r.Remove(again)
	if has("a") || has("b") {
		t.Error("series of controllers that are gone")
	}
}

// TestAdds_NeverGoBack: the counter does not decrease, although its parts are from different moments.
func TestAdds_NeverGoBack(t *testing.T) {
	r := metrics.New(metrics.Config{})
	stats := func(started uint64, ready int) metrics.Stats {
		return metrics.Stats{Stats: runner.Stats{Started: started, Ready: ready}}
	}
	st := stats(3, 4)
	if err := r.Add("web", metrics.NewController(), func() metrics.Stats { return st }); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		metrics.Stats
		want string
	}{{stats(3, 4), "7"}, {stats(4, 2), "7"}, {stats(8, 0), "8"}} {
		st = step.Stats
		want(t, scrape(t, r, ""), map[string]string{`workqueue_adds_total{controller="web",name="web"}`: step.want})
	}
}

// TestReconcileTime_IsPrometheusHistogram compares with Prometheus's own, on random durations and at the bounds.
func TestReconcileTime_IsPrometheusHistogram(t *testing.T) {
	r := metrics.New(metrics.Config{})
	c := add(t, r, "web", metrics.Stats{})
	c.Ran(&metrics.Run{})
	var bounds []float64
	for _, l := range scrape(t, r, "") {
		var bound float64
		if _, err := fmt.Sscanf(l, `controller_runtime_reconcile_time_seconds_bucket{controller="web",le="%g"}`, &bound); err == nil && !math.IsInf(bound, 0) {
			bounds = append(bounds, bound)
		}
	}
	model := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "controller_runtime_reconcile_time_seconds", Buckets: bounds}, []string{"controller"})
	model.WithLabelValues("web").Observe(0)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		d := time.Duration(rng.ExpFloat64() * float64(2*time.Second))
		if rng.IntN(4) == 0 {
			d = time.Duration(bounds[rng.IntN(len(bounds))]*1e9) + time.Duration(rng.IntN(3)-1)
		}
		c.Ran(&metrics.Run{Took: d})
		model.WithLabelValues("web").Observe(d.Seconds())
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(model)
	theirs, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := r.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ours {
		if f.GetName() != theirs[0].GetName() {
			continue
		}
		a, b := f.GetMetric()[0].GetHistogram(), theirs[0].GetMetric()[0].GetHistogram()
		if len(bounds) != 40 || len(a.GetBucket()) != len(b.GetBucket()) || a.GetSampleCount() != b.GetSampleCount() || math.Abs(a.GetSampleSum()/b.GetSampleSum()-1) > 1e-9 {
			t.Fatalf("got %d buckets, %d, %v; want %d, %d, %v", len(a.GetBucket()), a.GetSampleCount(), a.GetSampleSum(), len(b.GetBucket()), b.GetSampleCount(), b.GetSampleSum())
		}
		for i := range a.GetBucket() {
			if x, y := a.GetBucket()[i], b.GetBucket()[i]; x.GetUpperBound() != y.GetUpperBound() || x.GetCumulativeCount() != y.GetCumulativeCount() {
				t.Errorf("bucket %v: %d; want %v: %d", x.GetUpperBound(), x.GetCumulativeCount(), y.GetUpperBound(), y.GetCumulativeCount())
			}
		}
		return
	}
	t.Error("no histogram")
}

const openMetrics = "application/openmetrics-text; version=1.0.0"

func TestReconcileTime_ExemplarsNameARunOfEachBucket(t *testing.T) {
	r := metrics.New(metrics.Config{})
	c := add(t, r, "web", metrics.Stats{})
	line := func(le string) string {
		v, _ := value(scrape(t, r, openMetrics), `controller_runtime_reconcile_time_seconds_bucket{controller="web",le="`+le+`"}`)
		return v
	}
	c.Ran(&metrics.Run{ID: "a-1", Took: 7 * time.Millisecond})
	c.Ran(&metrics.Run{ID: "a-2", Took: 8 * time.Millisecond})
	c.Ran(&metrics.Run{ID: "a-3", Took: time.Hour})
	c.Ran(&metrics.Run{Took: time.Microsecond})
	lines := scrape(t, r, openMetrics)
	for le, want := range map[string]string{"0.005": "1", "0.01": `3 # {reconcile_id="a-1"} 0.007 `, "+Inf": `4 # {reconcile_id="a-3"} 3600.0 `} {
		got, _ := value(lines, `controller_runtime_reconcile_time_seconds_bucket{controller="web",le="`+le+`"}`)
		if !strings.HasPrefix(got, want) || strings.Contains(got, "#") != strings.Contains(want, "#") {
			t.Errorf("bucket %s: %q, want %q...", le, got, want)
		}
	}
	if got := line("0.01"); got != "3" {
		t.Errorf("the second scrape has the exemplar again: %q", got)
	}
	c.Ran(&metrics.Run{ID: "a-4", Took: 9 * time.Millisecond})
	if got := line("0.01"); !strings.Contains(got, "a-4") {
		t.Errorf("no exemplar of a run after the scrape: %q", got)
	}
	if text := strings.Join(scrape(t, r, ""), "\n"); strings.Contains(text, "reconcile_id=") {
		t.Error("the text format has no exemplars")
	}
}

// Only the tenants with the most memory have series of their own.
func TestTenants_AreBounded(t *testing.T) {
	tenants := map[string]int64{}
	for i := range int64(30) {
		tenants[fmt.Sprintf("team-%02d", i)] = i
	}
	r := metrics.New(metrics.Config{Version: "v1", Process: func() metrics.Process {
		return metrics.Process{Budget: &metrics.Budget{Tenants: tenants}}
	}})
	lines := scrape(t, r, "")
	want(t, lines, map[string]string{
		`wasmctl_tenant_memory_bytes{tenant="team-29"}`: "29", `wasmctl_tenant_memory_bytes{tenant="team-10"}`: "10", `wasmctl_tenant_memory_bytes{tenant="other"}`: "45",
	})
	if n := strings.Count(strings.Join(lines, "\n"), "wasmctl_tenant_memory_bytes{"); n != 21 {
		t.Errorf("%d series, want 21", n)
	}
}

func TestWatches_AreSummedUpByResource(t *testing.T) {
	r := metrics.New(metrics.Config{Version: "v1", Process: func() metrics.Process {
		return metrics.Process{
			Watches: []metrics.Watch{
				{Resource: "pods", State: "ready", Age: time.Second, Objects: 2, Bytes: 20},
				{Resource: "pods", State: "denied", Age: time.Minute, Failures: 3, Stalled: true, Objects: 1, Bytes: 10},
				{Resource: "swaps.example.com", State: "absent"},
			},
			Leader: &metrics.Leader{Name: "l", Leads: true}, Budget: &metrics.Budget{Limit: 4, Used: 3, Refused: 2}, Workers: &metrics.Workers{Limit: 9, Running: 8, Waiting: 7}, ForgedCode: 5,
		}
	}})
	want(t, scrape(t, r, ""), map[string]string{
		`wasmctl_watches{resource="pods",state="ready"}`: "1", `wasmctl_watches{resource="pods",state="denied"}`: "1",
		`wasmctl_watches{resource="pods",state="failing"}`: "0", `wasmctl_watches{resource="swaps.example.com",state="absent"}`: "1",
		`wasmctl_watch_progress_age_seconds{resource="pods"}`: "60", `wasmctl_watch_failures{resource="pods"}`: "3", `wasmctl_watches_stalled{resource="pods"}`: "1",
		`wasmctl_store_objects{resource="pods"}`: "3", `wasmctl_store_bytes{resource="pods"}`: "30", `leader_election_master_status{name="l"}`: "1",
		`wasmctl_memory_budget_bytes`: "4", `wasmctl_memory_budget_used_bytes`: "3", `wasmctl_memory_budget_refused_total`: "2",
		`wasmctl_workers`: "9", `wasmctl_forged_code_total`: "5", `wasmctl_workers_busy`: "8", `wasmctl_workers_waiting_controllers`: "7",
	})
}

// TestRegistry_Hammer counts, scrapes, adds and removes concurrently.
func TestRegistry_Hammer(t *testing.T) {
	r := metrics.New(metrics.Config{})
	const loops, workers = 200, 4
	shared := add(t, r, "shared", metrics.Stats{})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range loops {
				shared.Ran(&metrics.Run{ID: "x", Took: time.Duration(i) * time.Millisecond})
				shared.Called(abi.ExportReconcile, time.Millisecond, "")
				shared.HostCall(abi.OpAPIGet, abi.Status(i%3), time.Duration(i))
				name := fmt.Sprint(w, i%2)
				c := metrics.NewController()
				if err := r.Add(name, c, func() metrics.Stats { return metrics.Stats{} }); err != nil {
					t.Error(err)
					return
				}
				c.Started(1)
				if i%50 == 0 {
					if _, err := r.Gatherer().Gather(); err != nil {
						t.Error(err)
					}
				}
				r.Remove(c)
			}
		})
	}
	wg.Wait()
	want(t, scrape(t, r, ""), map[string]string{
		`controller_runtime_reconcile_time_seconds_count{controller="shared"}`:               fmt.Sprint(loops * workers),
		`wasmctl_guest_call_duration_seconds_count{controller="shared",hook="reconcile"}`:    fmt.Sprint(loops * workers),
		`controller_runtime_reconcile_total{controller="shared",result="success"}`:           fmt.Sprint(loops * workers),
		`controller_runtime_reconcile_time_seconds_bucket{controller="shared",le="+Inf"}`:    fmt.Sprint(loops * workers),
		`wasmctl_host_call_duration_seconds_count{controller="shared",op="api_get"}`:         fmt.Sprint((loops - 1) * workers),
		`wasmctl_guest_call_duration_seconds_count{controller="shared",hook="error_policy"}`: "",
	})
}

// BenchmarkRun is the cost of metrics for one run that does nothing, without scrapes: everything that is counted,
// except reading the clock once.
func BenchmarkRun(b *testing.B) {
	c := metrics.NewController()
	b.ReportAllocs()
	for b.Loop() {
		c.Started(20 * time.Microsecond)
		c.Called(abi.ExportReconcile, 2*time.Microsecond, "")
		c.Ran(&metrics.Run{ID: "8f3a-42", Reason: abi.ReasonResync, Took: 12 * time.Microsecond})
		c.Ended(14 * time.Microsecond)
	}
}

// TestController_ShowsWhatModulesReport: two controllers may report the same name, even if one reports a counter and
// the other a gauge.
func TestController_ShowsWhatModulesReport(t *testing.T) {
	r := metrics.New(metrics.Config{})
	a, b := add(t, r, "a", metrics.Stats{}), add(t, r, "b", metrics.Stats{})
	a.Custom(abi.MetricCounter, "renewed", 1)
	a.Custom(abi.MetricCounter, "renewed_total", 2.5)
	a.Custom(abi.MetricGauge, "certificates", 7)
	a.Custom(abi.MetricGauge, "certificates", -3)
	b.Custom(abi.MetricCounter, "renewed", 4)
	b.Custom(abi.MetricGauge, "renewed", 5)
	b.Custom(abi.MetricGauge, "info", 1)
	lines := scrape(t, r, "")
	want(t, lines, map[string]string{
		`wasmctl_custom_renewed_total{controller="a"}`:       "3.5",
		`wasmctl_custom_renewed_total{controller="b"}`:       "4",
		`wasmctl_custom_certificates{controller="a"}`:        "-3",
		`wasmctl_custom_renewed{controller="b"}`:             "5",
		`wasmctl_custom_info{controller="b"}`:                "1",
		`wasmctl_custom_certificates{controller="b"}`:        "",
		"# TYPE wasmctl_custom_renewed_total":                "counter",
		"# TYPE wasmctl_custom_certificates":                 "gauge",
		"# HELP wasmctl_custom_renewed_total":                "Reported by modules with the host function metric.",
		`wasmctl_custom_renewed_total{controller="unknown"}`: "",
	})
	r.Remove(a)
	if _, ok := value(scrape(t, r, ""), `wasmctl_custom_renewed_total{controller="a"}`); ok {
		t.Error("the series of a removed controller are still shown")
	}
}
