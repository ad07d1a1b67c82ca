// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"time"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"
)

// Monotonic reads a clock that never goes back. Use it to measure durations.
func (c *Context) Monotonic() time.Duration { return time.Duration(c.g.host.MonoNS()) }

// Random fills b with random bytes. The error is an *Error.
func (c *Context) Random(b []byte) error {
	if !c.g.host.Random(b) {
		return hostError("random", StatusInternal)
	}
	return nil
}

// BudgetKind is a kind of budget.
type BudgetKind int32

// The kinds of budget.
const (
	BudgetMilliseconds BudgetKind = 0 // time until the run is interrupted
	BudgetHostCalls    BudgetKind = 1 // operations of the Client, the Cache and other host functions
	BudgetFuel         BudgetKind = 2 // work, about one unit for each instruction
)

// Budget returns the remaining budget of a kind for this run, and whether that
// kind has a known limit.
func (c *Context) Budget(kind BudgetKind) (left int64, bounded bool) {
	left = c.g.host.Budget(int32(kind))
	return max(left, 0), left >= 0
}

// MetricKind is a kind of metric.
type MetricKind int32

// The kinds of metric.
const (
	MetricCounter MetricKind = 0 // the value is added
	MetricGauge   MetricKind = 1 // the value replaces the previous value
)

// Metric adds to a counter, or sets a gauge, of the module. wasmctl serves it
// at /metrics: a counter "greetings" appears as wasmctl_custom_greetings_total.
// The host adds the controller as the only label. A name consists of letters,
// digits and _. The number of names is limited: do not build names from user
// input.
//
// The error is an *Error. A lost metric seldom justifies a failed run: ignore
// the error, or log it.
func (c *Context) Metric(kind MetricKind, name string, value float64) error {
	if status := c.g.host.Metric(int32(kind), name, value); status != 0 {
		return hostError("metric", status)
	}
	return nil
}

// hostError returns the error of a host function that answers only a status.
func hostError(function string, status int32) error {
	return newError(&imports.Op{Name: function}, status, nil)
}
