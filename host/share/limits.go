// SPDX-License-Identifier: Apache-2.0

package share

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/meter"
)

// Defaults of Limits. docs/limits.md gives the reasons.
const (
	DefaultMemory       = 256 << 20             // bytes of linear memory of one instance
	DefaultTimeout      = 30 * time.Second      // wall-clock time of one entry call
	DefaultHostCalls    = 10_000                // operations of one entry call
	DefaultStack        = meter.DefaultMaxStack // bytes of stack of one entry call, by estimate
	DefaultLogLines     = 1_000                 // a second, of the module
	DefaultEventRate    = 100                   // a second, of the module
	DefaultAPIRate      = 1_000                 // requests a second, of the module
	DefaultMetricSeries = 1_000                 // of the module
)

// The fixed limits. Package kubeapi enforces those of the API.
const (
	RequestBytes  = abi.MaxBytes // of one operation
	ResultBytes   = abi.MaxBytes // of one entry call
	LogBytes      = 1 << 20      // a second, of the module
	Events        = 100          // of one entry call
	InstanceCalls = 100_000      // after which an instance is replaced
	InstanceRate  = 100          // instances that the module's runs may need in a second
)

// fixed has the values of the fixed limits that errors name.
var fixed = map[abi.LimitName]int64{
	abi.LimitRequestBytes: RequestBytes, abi.LimitResultBytes: ResultBytes, abi.LimitLogBytes: LogBytes,
	abi.LimitEvents: Events, abi.LimitInstanceRate: InstanceRate,
}

// MaxStack is the maximum of Limits.Stack: its recursion allocates 192 MiB at most.
const MaxStack = abi.MaxStack

// Limits bound what a module may use. Zero means the default of a limit.
type Limits struct {
	// Memory is the linear memory of one instance, in bytes. It is rounded down
	// to pages of 64 KiB.
	Memory int64 `json:"memory"`
	// Timeout is the wall-clock time of one entry call, host calls included.
	Timeout time.Duration `json:"timeout"`
	// HostCalls is how many operations one entry call may ask for.
	HostCalls int64 `json:"hostCalls,omitempty"`
	// Fuel is how much work one entry call may do, by the unit of
	// docs/metering.md; zero is not bounded.
	Fuel int64 `json:"fuel,omitempty"`
	// FuelRate is the fuel that all instances of the module together may use in a second. A
	// module that uses more is slowed down. Zero is not bounded. A manifest cannot lower it.
	FuelRate int64 `json:"fuelRate,omitempty"`
	// Stack is the stack of one entry call, in bytes by the estimate of
	// docs/metering.md: it bounds how deeply calls nest, and with it the memory of
	// the host that recursion takes, at most 12 times as much.
	Stack int64 `json:"stack,omitempty"`
	// LogLines is how many lines all instances together may log in a second; the rest is
	// dropped and counted.
	LogLines int64 `json:"logLines,omitempty"`
	// EventRate is how many events all instances together may record in a second.
	EventRate int64 `json:"eventRate,omitempty"`
	// APIRate is how many requests to the API server all instances together may send in a
	// second. The implementation of the operations enforces it.
	APIRate int64 `json:"apiRate,omitempty"`
	// MetricSeries is how many different names of metrics the module may report.
	MetricSeries int64 `json:"metricSeries,omitempty"`
}

// HighWater returns the memory, in bytes, beyond which an instance is replaced.
func (l *Limits) HighWater() int64 { return l.Memory / 2 }

// limit describes one field of Limits and its bounds.
type limit struct {
	name     abi.LimitName
	field    func(*Limits) *int64
	standard int64 // 0 is not bounded
}

// limitRows has a row for each of abi.LimitNames, in their order; a test holds
// that.
var limitRows = []limit{
	{abi.LimitMemory, func(l *Limits) *int64 { return &l.Memory }, DefaultMemory},
	{abi.LimitTimeout, func(l *Limits) *int64 { return (*int64)(&l.Timeout) }, int64(DefaultTimeout)},
	{abi.LimitHostCalls, func(l *Limits) *int64 { return &l.HostCalls }, DefaultHostCalls},
	{abi.LimitFuel, func(l *Limits) *int64 { return &l.Fuel }, 0},
	{abi.LimitStack, func(l *Limits) *int64 { return &l.Stack }, DefaultStack},
	{abi.LimitLogLines, func(l *Limits) *int64 { return &l.LogLines }, DefaultLogLines},
	{abi.LimitEventRate, func(l *Limits) *int64 { return &l.EventRate }, DefaultEventRate},
	{abi.LimitAPIRate, func(l *Limits) *int64 { return &l.APIRate }, DefaultAPIRate},
	{abi.LimitMetricSeries, func(l *Limits) *int64 { return &l.MetricSeries }, DefaultMetricSeries},
}

// Validate returns an error that names each limit that is negative or more than
// it can be.
func (l *Limits) Validate() error {
	var errs []error
	if l.FuelRate < 0 {
		errs = append(errs, fmt.Errorf("the fuel rate %d is negative", l.FuelRate))
	}
	for _, row := range limitRows {
		if v := *row.field(l); v < 0 || v > row.name.Most() {
			errs = append(errs, fmt.Errorf("limit %s: %d is not between 0 and %d", row.name, v, row.name.Most()))
		}
	}
	return errors.Join(errs...)
}

// Get returns a limit by its name, with a time in nanoseconds. It returns 0 if the limit is
// not bounded, or if there is no limit of that name.
func (l *Limits) Get(name abi.LimitName) int64 {
	for _, row := range limitRows {
		if row.name == name {
			return *row.field(l)
		}
	}
	return fixed[name]
}

// Set sets a limit by its name, a time in nanoseconds, and reports whether there
// is one of that name.
func (l *Limits) Set(name abi.LimitName, value int64) bool {
	for _, row := range limitRows {
		if row.name == name {
			*row.field(l) = value
			return true
		}
	}
	return false
}

// For returns the limits in force for a module with this manifest, which may be nil: of
// each limit the value in l or otherwise its default, or the value in the manifest if that
// is less. So a manifest never gives a module more than the operator does. more names the
// limits of which the manifest requests more than there is.
func (l Limits) For(m *abi.Manifest) (in Limits, more []abi.LimitName) {
	for _, row := range limitRows {
		v := row.field(&l)
		if *v == 0 {
			*v = row.standard
		}
		if m == nil {
			continue
		}
		asked := m.Limits.Get(row.name)
		if row.name == abi.LimitTimeout {
			asked = min(asked, math.MaxInt64/int64(time.Millisecond)) * int64(time.Millisecond)
		}
		switch {
		case asked > 0 && (*v == 0 || asked < *v):
			*v = asked
		case asked > *v && *v > 0:
			more = append(more, row.name)
		}
	}
	l.Memory = l.Memory / PageSize * PageSize
	return l, more
}

// Error returns the error of a call that went beyond one of the limits.
func (l *Limits) Error(name abi.LimitName, what string, err error) *abi.LimitError {
	return &abi.LimitError{Limit: name, Value: LimitText(name, l.Get(name)), What: what, Err: err}
}

// LimitText returns a limit as people write it.
func LimitText(name abi.LimitName, value int64) string {
	switch name {
	case abi.LimitTimeout:
		return time.Duration(value).String()
	case abi.LimitMemory, abi.LimitStack, abi.LimitRequestBytes, abi.LimitResultBytes, abi.LimitLogBytes:
		return SizeText(value)
	default:
		return strconv.FormatInt(value, 10)
	}
}

// SizeText returns a number of bytes as Kubernetes writes quantities: "256Ki", "64Mi".
func SizeText(n int64) string {
	units := []string{"", "Ki", "Mi", "Gi"}
	i := 0
	for ; i < len(units)-1 && n != 0 && n%1024 == 0; i++ {
		n /= 1024
	}
	return fmt.Sprintf("%d%s", n, units[i])
}
