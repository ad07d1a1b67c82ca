// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// Limits are the resource limits of a module. Zero means the host's default. A module can only lower its limits.
type Limits struct {
	// Memory is the linear memory of one instance, in bytes.
	Memory int64 `msgpack:"memory,omitempty" json:"memory,omitempty"`
	// Timeout is the wall-clock time of one call, in milliseconds.
	Timeout int64 `msgpack:"timeout,omitempty" json:"timeout,omitempty"`
	// HostCalls is the number of host calls in one call.
	HostCalls int64 `msgpack:"host_calls,omitempty" json:"host_calls,omitempty"`
	// Fuel is the work of one call, in units of fuel.
	Fuel int64 `msgpack:"fuel,omitempty" json:"fuel,omitempty"`
	// Stack is the stack of one call, in bytes as estimated in docs/metering.md: it limits how deeply calls nest.
	Stack int64 `msgpack:"stack,omitempty" json:"stack,omitempty"`
	// LogLines is the number of lines that the module may log per second.
	LogLines int64 `msgpack:"log_lines,omitempty" json:"log_lines,omitempty"`
	// EventRate is the number of events that the module may record per second.
	EventRate int64 `msgpack:"event_rate,omitempty" json:"event_rate,omitempty"`
	// APIRate is the number of requests to the API server that the module's runs may make per second.
	APIRate int64 `msgpack:"api_rate,omitempty" json:"api_rate,omitempty"`
	// MetricSeries is the number of series that the module may report.
	MetricSeries int64 `msgpack:"metric_series,omitempty" json:"metric_series,omitempty"`
}

// LimitName is the name of a limit in manifests, errors and counters.
type LimitName string

// The limits that can be set.
const (
	LimitMemory       LimitName = "memory"
	LimitTimeout      LimitName = "timeout"
	LimitHostCalls    LimitName = "host_calls"
	LimitFuel         LimitName = "fuel"
	LimitStack        LimitName = "stack"
	LimitLogLines     LimitName = "log_lines"
	LimitEventRate    LimitName = "event_rate"
	LimitAPIRate      LimitName = "api_rate"
	LimitMetricSeries LimitName = "metric_series"
)

// LimitMemoryBudget is the limit of the process.
const LimitMemoryBudget LimitName = "memory_budget"

// The limits that are fixed: a host has the same value for each module.
const (
	LimitRequestBytes  LimitName = "request_bytes"
	LimitResultBytes   LimitName = "result_bytes"
	LimitLogBytes      LimitName = "log_bytes"
	LimitEvents        LimitName = "events"
	LimitAPIInFlight   LimitName = "api_in_flight"
	LimitListItems     LimitName = "list_items"
	LimitListBytes     LimitName = "list_bytes"
	LimitInstanceCalls LimitName = "instance_calls"
	LimitHighWater     LimitName = "high_water"
	LimitInstanceRate  LimitName = "instance_rate"
)

// FixedLimits are the names of the limits that are fixed. A manifest or a setting with one of them is refused.
var FixedLimits = []LimitName{
	LimitRequestBytes, LimitResultBytes, LimitLogBytes, LimitEvents, LimitAPIInFlight,
	LimitListItems, LimitListBytes, LimitInstanceCalls, LimitHighWater, LimitInstanceRate,
}

// FixedText is the reason why a setting of one of FixedLimits is refused.
const FixedText = "this limit is fixed now: remove the setting; docs/limits.md has its value"

// LimitNames are the limits that a manifest may have, in the order of Limits.
var LimitNames = func() (names []LimitName) {
	for _, key := range fields(reflect.TypeFor[Limits]()) {
		names = append(names, LimitName(key))
	}
	return names
}()

// MaxMemory is the largest value of LimitMemory, all that a module can address, and
// MaxStack that of LimitStack: its recursion allocates 192 MiB at most.
const (
	MaxMemory = 4 << 30
	MaxStack  = 16 << 20
)

// Most returns the largest value that the limit can have.
func (name LimitName) Most() int64 {
	switch name {
	case LimitMemory:
		return MaxMemory
	case LimitStack:
		return MaxStack
	case LimitTimeout, LimitFuel, LimitHostCalls:
		return math.MaxInt64
	default:
		return math.MaxInt32
	}
}

// Get returns a limit by name; 0 if it is not set, or if l is nil.
func (l *Limits) Get(name LimitName) int64 {
	i := slices.Index(LimitNames, name)
	if l == nil || i < 0 {
		return 0
	}
	return reflect.ValueOf(l).Elem().Field(i).Int()
}

// Set sets a limit by name, a time in milliseconds. It reports whether there is a limit of that name.
func (l *Limits) Set(name LimitName, value int64) bool {
	i := slices.Index(LimitNames, name)
	if i >= 0 {
		reflect.ValueOf(l).Elem().Field(i).SetInt(value)
	}
	return i >= 0
}

func (l *Limits) validate() error {
	var errs []error
	for _, name := range LimitNames {
		if l.Get(name) < 0 {
			errs = append(errs, fmt.Errorf("limits: %s is negative", name))
		}
	}
	return errors.Join(errs...)
}

// ErrLimit is matched by every error caused by a limit.
var ErrLimit = errors.New("limit reached")

// LimitError is the error of a call that exceeded a limit. It matches ErrLimit.
type LimitError struct {
	// Limit is the limit; Value is its value with a unit, such as "8Mi", "30s" or "100".
	Limit LimitName
	Value string
	// What describes what exceeded it.
	What string
	// Waited means, for LimitTimeout, that the guest spent most of the time waiting for operations or for a CPU.
	Waited bool
	// Err is an error that is matched in addition to ErrLimit, or nil. Its text is not shown.
	Err error
}

// Error implements error. The text is for example "exceeded its time limit (timeout 30s)".
func (e *LimitError) Error() string { return fmt.Sprintf("%s (%s %s)", e.What, e.Limit, e.Value) }

// Is reports whether target is ErrLimit.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// Unwrap returns Err.
func (e *LimitError) Unwrap() error { return e.Err }
