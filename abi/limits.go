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
	// RequestBytes is the size of the request of one operation; ResultBytes is the size of the result of one call.
	RequestBytes int64 `msgpack:"request_bytes,omitempty" json:"request_bytes,omitempty"`
	ResultBytes  int64 `msgpack:"result_bytes,omitempty" json:"result_bytes,omitempty"`
	// LogLines and LogBytes are the amount that the module may log per second.
	LogLines int64 `msgpack:"log_lines,omitempty" json:"log_lines,omitempty"`
	LogBytes int64 `msgpack:"log_bytes,omitempty" json:"log_bytes,omitempty"`
	// Events is the number of events of one call; EventRate is that of the module per second.
	Events    int64 `msgpack:"events,omitempty" json:"events,omitempty"`
	EventRate int64 `msgpack:"event_rate,omitempty" json:"event_rate,omitempty"`
	// APIRate is the number of requests to the API server that the module's runs may make per second; APIInFlight is the number of
	// concurrent ones.
	APIRate     int64 `msgpack:"api_rate,omitempty" json:"api_rate,omitempty"`
	APIInFlight int64 `msgpack:"api_in_flight,omitempty" json:"api_in_flight,omitempty"`
	// ListItems and ListBytes limit one response of api_list or cache_list.
	ListItems int64 `msgpack:"list_items,omitempty" json:"list_items,omitempty"`
	ListBytes int64 `msgpack:"list_bytes,omitempty" json:"list_bytes,omitempty"`
	// MetricSeries is the number of series that the module may report.
	MetricSeries int64 `msgpack:"metric_series,omitempty" json:"metric_series,omitempty"`
	// InstanceCalls is the number of calls after which an instance is replaced by a fresh one; HighWater is the memory size, in bytes,
	// above which it is.
	InstanceCalls int64 `msgpack:"instance_calls,omitempty" json:"instance_calls,omitempty"`
	HighWater     int64 `msgpack:"high_water,omitempty" json:"high_water,omitempty"`
	// InstanceRate is the number of new instances per second that the module's runs may need.
	InstanceRate int64 `msgpack:"instance_rate,omitempty" json:"instance_rate,omitempty"`
}

// LimitName is the name of a limit in manifests, errors and counters.
type LimitName string

// The limits of a module. LimitMemoryBudget is that of the process, and not part of manifests.
const (
	LimitMemory        LimitName = "memory"
	LimitTimeout       LimitName = "timeout"
	LimitHostCalls     LimitName = "host_calls"
	LimitFuel          LimitName = "fuel"
	LimitStack         LimitName = "stack"
	LimitRequestBytes  LimitName = "request_bytes"
	LimitResultBytes   LimitName = "result_bytes"
	LimitLogLines      LimitName = "log_lines"
	LimitLogBytes      LimitName = "log_bytes"
	LimitEvents        LimitName = "events"
	LimitEventRate     LimitName = "event_rate"
	LimitAPIRate       LimitName = "api_rate"
	LimitAPIInFlight   LimitName = "api_in_flight"
	LimitListItems     LimitName = "list_items"
	LimitListBytes     LimitName = "list_bytes"
	LimitMetricSeries  LimitName = "metric_series"
	LimitInstanceCalls LimitName = "instance_calls"
	LimitHighWater     LimitName = "high_water"
	LimitInstanceRate  LimitName = "instance_rate"
	LimitMemoryBudget  LimitName = "memory_budget"
)

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
	case LimitMemory, LimitHighWater:
		return MaxMemory
	case LimitStack:
		return MaxStack
	case LimitRequestBytes, LimitResultBytes, LimitListBytes:
		return MaxBytes
	case LimitTimeout, LimitFuel, LimitHostCalls, LimitInstanceCalls:
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
