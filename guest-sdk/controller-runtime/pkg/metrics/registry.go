// Package metrics has the registry of a program's own metrics. They count in a
// module, but nobody reads them: the host does not know them.
package metrics

import "github.com/prometheus/client_golang/prometheus"

// RegistererGatherer registers metrics and gives them back.
type RegistererGatherer interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// Registry is where programs register their metrics.
var Registry RegistererGatherer = prometheus.NewRegistry()

// DefaultBindAddress is that of the metrics server in version 0.15, which has no effect.
var DefaultBindAddress = ":8080"
