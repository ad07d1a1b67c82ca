// SPDX-License-Identifier: Apache-2.0

// Package metrics has the registry of a program's own metrics. The metrics work
// in a module, but the host does not export them.
package metrics

import "github.com/prometheus/client_golang/prometheus"

// RegistererGatherer registers and gathers metrics.
type RegistererGatherer interface {
	prometheus.Registerer
	prometheus.Gatherer
}

// Registry is the registry for the metrics of the program.
var Registry RegistererGatherer = prometheus.NewRegistry()

// DefaultBindAddress is the address of the metrics server in version 0.15. It
// has no effect.
var DefaultBindAddress = ":8080"
