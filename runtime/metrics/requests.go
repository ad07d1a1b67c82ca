// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clientmetrics "k8s.io/client-go/tools/metrics"
)

// Buckets of Kubernetes' own components.
var (
	requestBuckets = []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60} // seconds
	sizeBuckets    = []float64{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216}
)

var requestDescriptions = []Description{
	{"rest_client_requests_total", "counter", []string{"code", "method", "host"}, "Requests to the API server.", false},
	{"rest_client_request_duration_seconds", "histogram", []string{"verb", "host"}, "Time until requests were answered, including retries.", false},
	{"rest_client_request_size_bytes", "histogram", []string{"verb", "host"}, "Size of request bodies.", true},
	{"rest_client_response_size_bytes", "histogram", []string{"verb", "host"}, "Size of response bodies, without watches and lists, which are streamed.", true},
	{"rest_client_request_retries_total", "counter", []string{"code", "verb", "host"}, "Retried requests, by the status of the response.", false},
}

// requestMetrics are the metrics of client-go, of which a process has only one set.
type requestMetrics struct {
	total, retries             *prometheus.CounterVec
	duration, sent, answerSize *prometheus.HistogramVec
}

// countRequests registers the metrics with client-go, and returns them.
var countRequests = sync.OnceValue(func() *requestMetrics {
	m := &requestMetrics{
		total: counterVec(0), duration: histogramVec(1, requestBuckets), sent: histogramVec(2, sizeBuckets),
		answerSize: histogramVec(3, sizeBuckets), retries: counterVec(4),
	}
	clientmetrics.Register(clientmetrics.RegisterOpts{
		RequestResult: m, RequestRetry: m, RequestLatency: latency{m.duration}, RequestSize: size{m.sent}, ResponseSize: size{m.answerSize},
	})
	return m
})

func counterVec(i int) *prometheus.CounterVec {
	d := requestDescriptions[i]
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
}

func histogramVec(i int, buckets []float64) *prometheus.HistogramVec {
	d := requestDescriptions[i]
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: buckets}, d.Labels)
}

// collectors returns the collectors of the metrics, for full scrapes or others.
func (m *requestMetrics) collectors(full bool) []prometheus.Collector {
	if full {
		return []prometheus.Collector{m.total, m.duration, m.sent, m.answerSize, m.retries}
	}
	return []prometheus.Collector{m.total, m.duration, m.retries}
}

// Increment implements clientmetrics.ResultMetric.
func (m *requestMetrics) Increment(_ context.Context, code, method, host string) {
	m.total.WithLabelValues(code, method, host).Inc()
}

// IncrementRetry implements clientmetrics.RetryMetric.
func (m *requestMetrics) IncrementRetry(_ context.Context, code, method, host string) {
	m.retries.WithLabelValues(code, method, host).Inc()
}

// latency implements clientmetrics.LatencyMetric. It ignores the URL, which would create a series per object.
type latency struct{ *prometheus.HistogramVec }

// Observe implements clientmetrics.LatencyMetric.
func (l latency) Observe(_ context.Context, verb string, u url.URL, took time.Duration) {
	l.WithLabelValues(verb, u.Host).Observe(took.Seconds())
}

// size implements clientmetrics.SizeMetric.
type size struct{ *prometheus.HistogramVec }

// Observe implements clientmetrics.SizeMetric.
func (s size) Observe(_ context.Context, verb, host string, bytes float64) {
	s.WithLabelValues(verb, host).Observe(bytes)
}
