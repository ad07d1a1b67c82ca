// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts the requests of webhooks under the names of controller-runtime. The label webhook is the path of a URL that is served, so
// the number of series is bounded.
type Metrics struct {
	latency  *prometheus.HistogramVec
	total    *prometheus.CounterVec
	inFlight *prometheus.GaugeVec
	panics   prometheus.Counter
	objects  *prometheus.HistogramVec
	// certificate returns the certificate that is served; nil if that is unknown.
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

var expiry = prometheus.NewDesc("wasmctl_webhook_certificate_expiry_timestamp_seconds", "Time after which the certificate that is served is not valid, in seconds since 1970.", nil, nil)

// NewMetrics returns metrics of a server with this certificate, without a series of requests.
func NewMetrics(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *Metrics {
	return &Metrics{
		certificate: certificate,
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "controller_runtime_webhook_latency_seconds", Help: "Time until requests of the API server were answered.",
			Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12),
		}, []string{"webhook"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_requests_total", Help: "Answered requests, by HTTP status. A denial has the status 200.",
		}, []string{"webhook", "code"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "controller_runtime_webhook_requests_in_flight", Help: "Requests that are being answered, or wait for that.",
		}, []string{"webhook"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_panics_total", Help: "Panics of the host while it answered a request.",
		}),
		objects: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "wasmctl_webhook_conversion_object_seconds", Help: "Time to convert a request's objects, per object.",
			Buckets: prometheus.ExponentialBuckets(10e-6, 4, 10),
		}, []string{"webhook"}),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- expiry
	m.each(func(c prometheus.Collector) { c.Describe(ch) })
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	if m.certificate != nil {
		if c, err := m.certificate(nil); err == nil && c.Leaf != nil { // there is none shortly after a start
			ch <- prometheus.MustNewConstMetric(expiry, prometheus.GaugeValue, float64(c.Leaf.NotAfter.Unix()))
		}
	}
	m.each(func(c prometheus.Collector) { c.Collect(ch) })
}

func (m *Metrics) each(do func(prometheus.Collector)) {
	for _, c := range []prometheus.Collector{m.latency, m.total, m.inFlight, m.panics, m.objects} {
		do(c)
	}
}

// begin counts a request for a path, until done is called with the status of the answer. If the path is new, others may be gone: paths
// returns those that are served.
func (m *Metrics) begin(of *share, path string, paths func(prefix string) map[string]bool) (done func(code int)) {
	if of.add(path) {
		m.prune(of, paths(of.prefix))
	}
	inFlight, start := m.inFlight.WithLabelValues(path), time.Now()
	inFlight.Inc()
	return func(code int) {
		if inFlight.Dec(); of.has(path) {
			m.latency.WithLabelValues(path).Observe(time.Since(start).Seconds())
			m.total.WithLabelValues(path, strconv.Itoa(code)).Inc()
		}
	}
}

// prune deletes the series of all paths that are not served.
func (m *Metrics) prune(of *share, served map[string]bool) {
	of.mu.Lock()
	defer of.mu.Unlock()
	for path := range of.series {
		if served[path] {
			continue
		}
		delete(of.series, path)
		for _, c := range []interface{ DeletePartialMatch(prometheus.Labels) int }{m.latency, m.total, m.inFlight, m.objects} {
			c.DeletePartialMatch(prometheus.Labels{"webhook": path})
		}
	}
}

// add remembers that a path has series, and reports whether it is new.
func (s *share) add(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.series[path]
	s.series[path] = true
	return !known
}

func (s *share) has(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.series[path]
}
