// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"slices"

	"github.com/vmihailenco/msgpack/v5"
)

// Op is the name of a host function that takes a request and returns data.
type Op string

// The operations of ABI v1. Each is imported by its name with the type OpType.
const (
	OpAPIGet      Op = "api_get"
	OpAPIList     Op = "api_list"
	OpAPICreate   Op = "api_create"
	OpAPIUpdate   Op = "api_update"
	OpAPIPatch    Op = "api_patch"
	OpAPIApply    Op = "api_apply"
	OpAPIDelete   Op = "api_delete"
	OpCacheGet    Op = "cache_get"
	OpCacheList   Op = "cache_list"
	OpEventRecord Op = "event_record"
	OpConfigGet   Op = "config_get"
)

// Ops are all operations, in the order of ABI.md.
var Ops = []Op{
	OpAPIGet, OpAPIList, OpAPICreate, OpAPIUpdate, OpAPIPatch, OpAPIApply, OpAPIDelete,
	OpCacheGet, OpCacheList, OpEventRecord, OpConfigGet,
}

// IsAPI reports whether an operation reads or writes the cluster or the host's cache.
func (o Op) IsAPI() bool { return o != OpConfigGet && slices.Contains(Ops, o) }

// Names of the host functions that are not an Op.
const (
	FuncTake      = "take"
	FuncLog       = "log"
	FuncLogLevel  = "log_level"
	FuncMetric    = "metric"
	FuncCancelled = "cancelled"
	FuncBudget    = "budget"
)

// Kinds of metric.
const (
	MetricCounter int32 = 0 // the value is added
	MetricGauge   int32 = 1 // the value replaces the last one
)

// MetricTotal is the suffix of counters in Prometheus.
const MetricTotal = "_total"

// OpType is the type of every host function that returns data: (req_ptr, req_len, dst_ptr, dst_cap) -> status<<32 | length. An import of
// ImportModule that has this type and an unknown name is linked to a stub that returns StatusUnsupported.
var OpType = FuncType{Params: []ValType{I32, I32, I32, I32}, Results: []ValType{I64}}

// HostFuncs maps the name of each host function to its type.
var HostFuncs = map[string]FuncType{
	FuncTake:      {Params: []ValType{I32, I32, I32}, Results: []ValType{I32}},
	FuncLog:       {Params: []ValType{I32, I32, I32}},
	FuncLogLevel:  typeGet32,
	FuncMetric:    {Params: []ValType{I32, I32, I32, F64}, Results: []ValType{I32}},
	FuncCancelled: typeGet32,
	FuncBudget:    {Params: []ValType{I32}, Results: []ValType{I64}},
}

// RemovedFuncs are host functions that ABI v1 had before the first release.
var RemovedFuncs = []string{"call", "now_ms", "mono_ns", "random"}

func init() {
	for _, op := range Ops {
		HostFuncs[string(op)] = OpType
	}
}

// Levels of the log and log_level host functions: those of log/slog.
const (
	LevelDebug int32 = -4
	LevelInfo  int32 = 0
	LevelWarn  int32 = 4
	LevelError int32 = 8
)

// Kinds of the budget host function. It returns the remaining amount, or -1 if it is unlimited.
const (
	BudgetMilliseconds int32 = 0
	BudgetHostCalls    int32 = 1
	BudgetFuel         int32 = 2
)

// PatchType names the three ways to patch an object.
type PatchType string

// The patch types of the Kubernetes API. Apply is an Op of its own.
const (
	PatchJSON      PatchType = "json"
	PatchMerge     PatchType = "merge"
	PatchStrategic PatchType = "strategic"
)

// APIRequest is the request of every api_* operation. Keys mirror the names of the Kubernetes API; ABI.md specifies the keys of each
// operation.
type APIRequest struct {
	APIVersion string `msgpack:"apiVersion,omitempty"`
	Kind       string `msgpack:"kind,omitempty"`
	Namespace  string `msgpack:"namespace,omitempty"`
	Name       string `msgpack:"name,omitempty"`
	// Subresource is, for example, "status" or "scale"; empty means the object itself.
	Subresource string `msgpack:"subresource,omitempty"`

	// Object is the body of create, update and apply.
	Object    msgpack.RawMessage `msgpack:"object,omitempty"`
	Patch     msgpack.RawMessage `msgpack:"patch,omitempty"`
	PatchType PatchType          `msgpack:"patchType,omitempty"`

	DryRun          bool   `msgpack:"dryRun,omitempty"`
	FieldManager    string `msgpack:"fieldManager,omitempty"`
	Force           bool   `msgpack:"force,omitempty"`
	FieldValidation string `msgpack:"fieldValidation,omitempty"`

	Preconditions      *Preconditions `msgpack:"preconditions,omitempty"`
	PropagationPolicy  string         `msgpack:"propagationPolicy,omitempty"`
	GracePeriodSeconds *int64         `msgpack:"gracePeriodSeconds,omitempty"`

	LabelSelector        string       `msgpack:"labelSelector,omitempty"`
	FieldSelector        string       `msgpack:"fieldSelector,omitempty"`
	Owner                string       `msgpack:"owner,omitempty"` // the uid of an owner, for cache_list
	Index                string       `msgpack:"index,omitempty"` // for cache_list: the name, the value to look up, and new values of objects
	Value                string       `msgpack:"value,omitempty"`
	Entries              []IndexEntry `msgpack:"entries,omitempty"`
	Limit                int64        `msgpack:"limit,omitempty"`
	Continue             string       `msgpack:"continue,omitempty"`
	ResourceVersion      string       `msgpack:"resourceVersion,omitempty"`
	ResourceVersionMatch string       `msgpack:"resourceVersionMatch,omitempty"`
}

// IndexEntry is an entry that a module adds to an index: the values of one state of an object.
type IndexEntry struct {
	Namespace       string   `msgpack:"namespace,omitempty"`
	Name            string   `msgpack:"name"`
	UID             string   `msgpack:"uid"`
	ResourceVersion string   `msgpack:"resourceVersion"`
	Values          []string `msgpack:"values,omitempty"`
}

// Preconditions must hold for a write; otherwise, the status is 409.
type Preconditions struct {
	UID             string `msgpack:"uid,omitempty"`
	ResourceVersion string `msgpack:"resourceVersion,omitempty"`
}

// ConfigRequest is the request of config_get. The response is the value of Key (nil if it is not set) or, if Key is empty, a map of all
// settings.
type ConfigRequest struct {
	Key string `msgpack:"key,omitempty"`
}

// EventRequest is the request of event_record.
type EventRequest struct {
	// Type is "Normal" or "Warning"; empty means Normal.
	Type string `msgpack:"type,omitempty"`
	// Reason is the reason as a CamelCase word of at most 128 bytes. It is required.
	Reason string `msgpack:"reason"`
	// Action is the action that was taken or failed, as a CamelCase word; empty means Reconcile.
	Action string `msgpack:"action,omitempty"`
	// Note is a text for people, of at most 1024 bytes; a longer one is truncated.
	Note string `msgpack:"note,omitempty"`
	// Regarding is the subject of the event; nil means the reconciled object.
	Regarding *EventObject `msgpack:"regarding,omitempty"`
	// Related is a second object, or nil.
	Related *EventObject `msgpack:"related,omitempty"`
}

// EventObject identifies an object of an event.
type EventObject struct {
	APIVersion string `msgpack:"apiVersion"`
	Kind       string `msgpack:"kind"`
	Namespace  string `msgpack:"namespace,omitempty"`
	Name       string `msgpack:"name"`
	UID        string `msgpack:"uid,omitempty"`
}
