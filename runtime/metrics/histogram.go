// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Buckets of controller-runtime and client-go, in seconds, so that existing dashboards work.
var (
	reconcileBuckets = []float64{
		0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
		1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
	}
	queueBuckets = prometheus.ExponentialBuckets(10e-9, 10, 12)
	callBuckets  = prometheus.ExponentialBuckets(1e-6, 4, 13) // 1 µs to 17 s

	// fewBuckets are the buckets outside of full scrapes. Each kind of histogram that has them has all
	// of them among its bounds.
	fewBuckets = []float64{0.01, 0.1, 1, 10}
)

// histogram counts durations. Prometheus's own histogram would use most of the overhead that one reconcile may have: this one needs two
// atomic additions, and creates an exemplar only for the first duration in a bucket after a scrape. It is safe for concurrent use.
type histogram struct {
	bounds []float64 // upper bounds in seconds; shared between histograms
	limits []int64   // the same in nanoseconds

	counts []atomic.Uint64 // by bucket, not cumulative; the last is for longer durations
	sum    atomic.Int64    // nanoseconds
	// exemplars has the exemplar of each bucket, or nil if there was none since the last scrape. The slice is nil if exemplars are
	// disabled.
	exemplars []atomic.Pointer[exemplar]
}

// exemplar is a duration and the run that it belongs to.
type exemplar struct {
	id   string
	took time.Duration
	at   time.Time
}

func newHistogram(bounds []float64) *histogram {
	h := &histogram{bounds: bounds, limits: make([]int64, len(bounds)), counts: make([]atomic.Uint64, len(bounds)+1)}
	for i, b := range bounds {
		h.limits[i] = nanoseconds(b)
	}
	return h
}

func nanoseconds(seconds float64) int64 { return int64(math.Round(seconds * 1e9)) }

// withExemplars enables exemplars.
func (h *histogram) withExemplars() *histogram {
	h.exemplars = make([]atomic.Pointer[exemplar], len(h.counts))
	return h
}

// observe counts one duration.
func (h *histogram) observe(d time.Duration) { h.counts[h.add(d)].Add(1) }

// add adds to the sum, and returns the index of the bucket. Most durations are in one of the first buckets.
func (h *histogram) add(d time.Duration) int {
	h.sum.Add(int64(d))
	for i, limit := range h.limits {
		if int64(d) <= limit {
			return i
		}
	}
	return len(h.limits)
}

// observeRun counts the duration of a run, with its id.
func (h *histogram) observeRun(d time.Duration, id string) {
	i := h.add(d)
	h.counts[i].Add(1)
	if id != "" && h.exemplars[i].Load() == nil {
		h.exemplars[i].CompareAndSwap(nil, &exemplar{id: id, took: d, at: time.Now()})
	}
}

// used reports whether anything was counted.
func (h *histogram) used() bool {
	for i := range h.counts {
		if h.counts[i].Load() > 0 {
			return true
		}
	}
	return false
}

// metric returns the current figures with these buckets, which must be among the bounds. Each exemplar is returned once, so that the
// next run in its bucket creates a new one.
func (h *histogram) metric(desc *prometheus.Desc, shown []float64, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(shown))
	var total uint64
	for i, limit := range h.limits {
		total += h.counts[i].Load()
		if len(buckets) < len(shown) && limit == nanoseconds(shown[len(buckets)]) {
			buckets[shown[len(buckets)]] = total
		}
	}
	total += h.counts[len(h.bounds)].Load()
	m := prometheus.MustNewConstHistogram(desc, total, time.Duration(h.sum.Load()).Seconds(), buckets, labels...)
	var list []prometheus.Exemplar
	for i := range h.exemplars {
		if e := h.exemplars[i].Swap(nil); e != nil {
			list = append(list, prometheus.Exemplar{Value: e.took.Seconds(), Labels: prometheus.Labels{"reconcile_id": e.id}, Timestamp: e.at})
		}
	}
	if len(list) == 0 {
		return m
	}
	return prometheus.MustNewMetricWithExemplars(m, list...)
}
