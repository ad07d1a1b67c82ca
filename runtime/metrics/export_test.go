package metrics

import "github.com/prometheus/client_golang/prometheus"

// Gatherer gives the metrics to programs.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.registry }
