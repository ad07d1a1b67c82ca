// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Gatherer returns the metrics of full scrapes for programs.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.full }
