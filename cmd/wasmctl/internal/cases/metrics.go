// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
)

// metrics has the metrics of a module: the sum of a counter, and the last value of a gauge.
type metrics struct {
	mu     sync.Mutex
	values map[string]float64 // by "counter NAME" or "gauge NAME"; guarded by mu
}

func (m *metrics) add(kind int32, name string, value float64) abi.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[string]float64{}
	}
	if kind == abi.MetricGauge {
		m.values["gauge "+name] = value
	} else {
		m.values["counter "+name] += value
	}
	return abi.StatusOK
}

// list returns a line for each metric: "counter renewed_total 1".
func (m *metrics) list() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(m.values)) {
		lines = append(lines, name+" "+strconv.FormatFloat(m.values[name], 'g', -1, 64))
	}
	return lines
}
