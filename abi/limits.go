package abi

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Limits bounds what one module may use. Zero leaves a limit to the host. A
// module can only lower its limits here.
type Limits struct {
	// Memory is the linear memory of one instance, in bytes.
	Memory int64 `msgpack:"memory,omitempty" json:"memory,omitempty"`
	// Timeout is the wall-clock time of one call, in milliseconds.
	Timeout int64 `msgpack:"timeout,omitempty" json:"timeout,omitempty"`
	// HostCalls is the number of host calls of one call.
	HostCalls int64 `msgpack:"host_calls,omitempty" json:"host_calls,omitempty"`
	// Fuel is the work of one call, in units of fuel.
	Fuel int64 `msgpack:"fuel,omitempty" json:"fuel,omitempty"`
	// Stack is the stack of one call, in bytes by the estimate of docs/metering.md:
	// it bounds how deeply calls nest.
	Stack int64 `msgpack:"stack,omitempty" json:"stack,omitempty"`
	// RequestBytes is the size of the request of one operation, ResultBytes that
	// of what one call returns.
	RequestBytes int64 `msgpack:"request_bytes,omitempty" json:"request_bytes,omitempty"`
	ResultBytes  int64 `msgpack:"result_bytes,omitempty" json:"result_bytes,omitempty"`
	// LogLines and LogBytes are what the module may log in a second.
	LogLines int64 `msgpack:"log_lines,omitempty" json:"log_lines,omitempty"`
	LogBytes int64 `msgpack:"log_bytes,omitempty" json:"log_bytes,omitempty"`
	// Events is the number of events of one call, EventRate that of the module in
	// a second.
	Events    int64 `msgpack:"events,omitempty" json:"events,omitempty"`
	EventRate int64 `msgpack:"event_rate,omitempty" json:"event_rate,omitempty"`
	// APIRate is the number of requests to the API server that the module's runs
	// may make in a second, APIInFlight how many may be under way at once.
	APIRate     int64 `msgpack:"api_rate,omitempty" json:"api_rate,omitempty"`
	APIInFlight int64 `msgpack:"api_in_flight,omitempty" json:"api_in_flight,omitempty"`
	// ListItems and ListBytes bound one answer of api_list or cache_list.
	ListItems int64 `msgpack:"list_items,omitempty" json:"list_items,omitempty"`
	ListBytes int64 `msgpack:"list_bytes,omitempty" json:"list_bytes,omitempty"`
	// MetricSeries is the number of series that the module may report.
	MetricSeries int64 `msgpack:"metric_series,omitempty" json:"metric_series,omitempty"`
	// InstanceCalls is after how many calls an instance is replaced by a fresh one,
	// HighWater the memory, in bytes, beyond which one is.
	InstanceCalls int64 `msgpack:"instance_calls,omitempty" json:"instance_calls,omitempty"`
	HighWater     int64 `msgpack:"high_water,omitempty" json:"high_water,omitempty"`
	// InstanceRate is the number of instances that the module's runs may need in a
	// second.
	InstanceRate int64 `msgpack:"instance_rate,omitempty" json:"instance_rate,omitempty"`
}

// LimitName names a limit: in the manifest's limits, in errors and in counters.
type LimitName string

// The limits of a module. LimitMemoryBudget is that of the process: it is in no
// manifest.
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

// Get returns a limit by its name; 0 where it is left to the host, for a nil
// Limits too.
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

// ErrLimit is matched by every error that says that a limit was reached.
var ErrLimit = errors.New("limit reached")

// LimitError is the error of a call that went beyond a limit. It matches
// ErrLimit.
type LimitError struct {
	// Limit is the limit, Value what it is, with its unit: "8Mi", "30s", "100".
	Limit LimitName
	Value string
	// What names what exceeded it.
	What string
	// Waited says, for LimitTimeout, that most of the time went by while the guest
	// waited for operations to be answered, or for a CPU.
	Waited bool
	// Err is what the error matches beside ErrLimit, or nil. Its text is not shown.
	Err error
}

// Error implements error: "exceeded its time limit (timeout 30s)".
func (e *LimitError) Error() string { return fmt.Sprintf("%s (%s %s)", e.What, e.Limit, e.Value) }

// Is reports whether target is ErrLimit.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// Unwrap returns Err.
func (e *LimitError) Unwrap() error { return e.Err }
