// SPDX-License-Identifier: Apache-2.0

package metrics

// RESTClientMetric is a metric of client-go's REST client, which a module does not have.
type RESTClientMetric int

// The metrics of the REST client.
const (
	MetricRequestLatency RESTClientMetric = iota + 1
	MetricDNSResolutionLatency
	MetricRequestSize
	MetricResponseSize
	MetricRateLimiterLatency
	MetricRequestRetry
)

// RESTClientMetricsOptions have no effect.
type RESTClientMetricsOptions struct {
	DurationBuckets []float64
}

// RegisterRESTClientMetrics has no effect.
func RegisterRESTClientMetrics(...RESTClientMetric) {}

// RegisterRESTClientMetricsWithOptions has no effect.
func RegisterRESTClientMetricsWithOptions(RESTClientMetricsOptions, ...RESTClientMetric) {}
