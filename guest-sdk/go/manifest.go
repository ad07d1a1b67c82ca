package wasmctl

import (
	"slices"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/entry"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Version of this SDK.
const Version = "0.1.0"

// abiVersion is the major version of the ABI that this SDK speaks.
const abiVersion = 1

// Manifest describes a module (abi/ABI.md, section 8). The operator can
// override it, and decides which capabilities to grant.
type Manifest struct {
	// Name and Version are for people.
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`

	// For is the kind that is reconciled.
	For *Watch `json:"for,omitempty"`
	// Owns are the kinds whose changes reconcile their controlling owner.
	Owns []Watch `json:"owns,omitempty"`
	// Watches are the kinds whose changes concern objects of For; see
	// Watch.Map.
	Watches []Watch `json:"watches,omitempty"`

	// Capabilities are the rights that the Client, the Cache, events and
	// declared results need. You need none to watch, to read the kind of For,
	// or to write its status.
	Capabilities []Capability `json:"capabilities,omitempty"`
	// Finalizer is the name of the finalizer for Reconciler.Finalize:
	// "example.com/cleanup". A name without a domain is only for custom resources
	// that have it already, and wasmctl warns of it.
	Finalizer string `json:"finalizer,omitempty"`
	// Limits bounds what one instance may use.
	Limits *Limits `json:"limits,omitempty"`
	// Concurrency is the number of objects reconciled at a time; 0 leaves it to
	// the host.
	Concurrency int `json:"concurrency,omitempty"`
	// Config holds the settings' defaults; see Context.Config.
	Config map[string]string `json:"config,omitempty"`

	// Requires names the abilities of the host that the module needs: a host
	// without them does not load it. Wants names the optional ones (see
	// Context.HostHas).
	Requires []string `json:"requires,omitempty"`
	Wants    []string `json:"wants,omitempty"`
}

// Capability is a right to use the API, as an RBAC rule of one resource.
type Capability struct {
	// Group is empty for the core resources.
	Group string `json:"group"`
	// Resource is the plural, "configmaps".
	Resource string `json:"resource"`
	// Subresources, if given, restrict the rule to these; it then does not
	// cover the resource itself.
	Subresources []string `json:"subresources,omitempty"`
	// Verbs are get, list, create, update, patch, delete, or "*" for all. Apply
	// needs patch; an apply that creates an object also needs create.
	Verbs []string `json:"verbs"`
	// Namespaces and Names narrow it; empty is all.
	Namespaces []string `json:"namespaces,omitempty"`
	Names      []string `json:"names,omitempty"`
	// Fields, if given, are the only fields of an object that create, update
	// and patch may touch: "spec.replicas", "metadata.labels",
	// "spec.containers[name=app].image". Each covers everything below it
	// (abi/ABI.md, section 8).
	Fields []string `json:"fields,omitempty"`
}

// Limits limits what the module may use. Zero leaves a limit to the host. A
// module can only lower the limits of the host. See docs/limits.md.
type Limits struct {
	// Memory of one instance, in bytes.
	Memory int64 `json:"memory,omitempty"`
	// Timeout of one call, in milliseconds.
	Timeout int64 `json:"timeout,omitempty"`
	// HostCalls is the number of host calls of one call.
	HostCalls int64 `json:"host_calls,omitempty"`
	// Fuel is the work of one call, about one unit an instruction.
	Fuel int64 `json:"fuel,omitempty"`
	// Stack of one call, in bytes by the host's estimate.
	Stack int64 `json:"stack,omitempty"`
	// RequestBytes bounds the request of one operation, ResultBytes what one call
	// returns.
	RequestBytes int64 `json:"request_bytes,omitempty"`
	ResultBytes  int64 `json:"result_bytes,omitempty"`
	// LogLines and LogBytes of the module in a second.
	LogLines int64 `json:"log_lines,omitempty"`
	LogBytes int64 `json:"log_bytes,omitempty"`
	// Events of one call, EventRate of the module in a second.
	Events    int64 `json:"events,omitempty"`
	EventRate int64 `json:"event_rate,omitempty"`
	// APIRate is the number of requests to the API server in a second, APIInFlight
	// how many may be under way at once.
	APIRate     int64 `json:"api_rate,omitempty"`
	APIInFlight int64 `json:"api_in_flight,omitempty"`
	// ListItems and ListBytes of one answer to a list.
	ListItems int64 `json:"list_items,omitempty"`
	ListBytes int64 `json:"list_bytes,omitempty"`
	// MetricSeries is the number of series that the module may report.
	MetricSeries int64 `json:"metric_series,omitempty"`
	// InstanceCalls is the number of calls after which a fresh instance
	// replaces an instance. HighWater is the memory, in bytes, beyond which
	// this happens.
	InstanceCalls int64 `json:"instance_calls,omitempty"`
	HighWater     int64 `json:"high_water,omitempty"`
	// InstanceRate is the number of instances that runs may need in a second.
	InstanceRate int64 `json:"instance_rate,omitempty"`
}

// described is a Manifest with what the SDK itself knows.
type described struct {
	Manifest
	ABI int    `json:"abi"`
	SDK string `json:"sdk"`
	// Hooks names the optional exports that are real. This SDK exports all that
	// it has, used or not, so it is never nil.
	Hooks []string `json:"hooks"`
}

// describe returns the manifest of r in msgpack.
func describe(r *Reconciler) []byte {
	d := described{Manifest: r.Manifest, ABI: abiVersion, SDK: "go/" + Version, Hooks: r.hooks()}
	if d.For != nil {
		w := d.For.described()
		d.For = &w
	}
	d.Owns, d.Watches = describedAll(d.Owns), describedAll(d.Watches)
	b, err := wire.Append(nil, d)
	if err != nil {
		panic("wasmctl.Register: manifest: " + err.Error())
	}
	return b
}

// hooks names the optional exports that r has a function for.
func (r *Reconciler) hooks() []string {
	hooks := []string{}
	for _, h := range []struct {
		name string
		real bool
	}{
		{entry.ErrorPolicy, r.ErrorPolicy != nil},
		{entry.Finalize, r.Finalize != nil},
		{entry.Map, slices.ContainsFunc(r.Manifest.Watches, func(w Watch) bool { return w.Mapper != nil })},
		{entry.Filter, r.Manifest.anyWatch(func(w *Watch) bool { return w.Filter != nil })},
		{entry.Configure, r.Configure != nil},
	} {
		if h.real {
			hooks = append(hooks, h.name)
		}
	}
	return hooks
}
