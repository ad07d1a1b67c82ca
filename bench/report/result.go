// SPDX-License-Identifier: Apache-2.0

// Package report turns the measurements of make bench-peers into the tables and charts of docs/performance.md. The same result gives the
// same bytes.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// Run is one run of make bench-peers.
type Run struct {
	Commit     string     `json:"commit"`
	Time       string     `json:"time"` // RFC 3339
	Machine    string     `json:"machine"`
	Kubernetes string     `json:"kubernetes"`
	Load       []string   `json:"load"` // load averages of the machine, before and after each workload
	Rounds     int        `json:"rounds"`
	Skipped    []string   `json:"skipped,omitempty"` // contenders that could not be built, with the reason
	Workloads  []Workload `json:"workloads"`
}

// Workload is a task of the contenders, with the measurements.
type Workload struct {
	Name    string   `json:"name"` // the name of its chart's file
	Title   string   `json:"title"`
	About   string   `json:"about"`
	Metrics []Metric `json:"metrics"`
	Rows    []Row    `json:"rows"` // ratios are relative to the first
}

// Metric is one figure.
type Metric struct {
	Name  string `json:"name"`
	Unit  string `json:"unit,omitempty"`
	Chart bool   `json:"chart,omitempty"`
}

// Row has the figures of one contender.
type Row struct {
	Contender string               `json:"contender"`
	Values    map[string][]float64 `json:"values"` // by name of the metric: one value per round
}

// Add adds the figures of one round.
func (r *Row) Add(round map[string]float64) {
	if r.Values == nil {
		r.Values = map[string][]float64{}
	}
	for name, value := range round {
		r.Values[name] = append(r.Values[name], value)
	}
}

// Load reads a run from its file.
func Load(path string) (*Run, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("report[%s]: %w: make bench-peers writes it", path, err)
	}
	run := &Run{}
	if err := json.Unmarshal(data, run); err != nil {
		return nil, fmt.Errorf("report[%s]: %w", path, err)
	}
	return run, nil
}

// Save writes a run into its file.
func (r *Run) Save(path string) error {
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return fmt.Errorf("report[%s]: %w", path, err)
	}
	return os.WriteFile(path, append(data, '\n'), 0o644) // world-readable
}

// spread is the median and the range of some values.
type spread struct{ median, least, most float64 }

// spreadOf returns the spread of at least one value.
func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// ratios returns the ratio of each value to the other one of the same round. None of the others may be 0.
func ratios(values, others []float64) []float64 {
	found := make([]float64, min(len(values), len(others)))
	for i := range found {
		found[i] = values[i] / others[i]
	}
	return found
}
