// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"slices"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/entry"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Version is the version of this SDK.
const Version = "0.1.0"

// abiVersion is the major version of the ABI that this SDK implements.
const abiVersion = 1

// Manifest describes a module (abi/ABI.md, section 8). The operator of the host
// can override it, and decides which capabilities to grant.
type Manifest struct {
	// Name and Version are for people.
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`

	// For is the kind that is reconciled.
	For *Watch `json:"for,omitempty"`
	// Owns are the kinds whose changes reconcile their controlling owner.
	Owns []Watch `json:"owns,omitempty"`
	// Watches are further kinds; Watch.Map selects the objects of For that a
	// change concerns.
	Watches []Watch `json:"watches,omitempty"`

	// Capabilities are the rights that the Client, the Cache, events and
	// declared results need. You need none to watch, to read the kind of For,
	// or to write its status.
	Capabilities []Capability `json:"capabilities,omitempty"`
	// Webhooks are requests to the API server that the module judges before
	// they take effect. Conversions are kinds whose objects it converts between
	// versions.
	Webhooks    []Webhook    `json:"-"`
	Conversions []Conversion `json:"conversions,omitempty"`
	// Finalizer is the name of the finalizer for Reconciler.Finalize, for
	// example "example.com/cleanup". Use a name without a domain only for
	// custom resources that have it already; wasmctl warns about it.
	Finalizer string `json:"finalizer,omitempty"`
	// Limits bounds the resources of one instance.
	Limits *Limits `json:"limits,omitempty"`
	// Concurrency is the number of objects reconciled at a time; if 0, the host
	// decides.
	Concurrency int `json:"concurrency,omitempty"`
	// Config has the defaults of the settings; see Context.Config.
	Config map[string]string `json:"config,omitempty"`

	// Requires lists the abilities of the host that the module needs: a host
	// without them does not load the module. Wants lists optional abilities
	// (see Context.HostHas).
	Requires []string `json:"requires,omitempty"`
	Wants    []string `json:"wants,omitempty"`
}

// Capability is a right to use the API, like an RBAC rule for one resource.
type Capability struct {
	// Group is empty for the core resources.
	Group string `json:"group"`
	// Resource is the plural name, for example "configmaps".
	Resource string `json:"resource"`
	// Subresources, if given, restrict the rule to these subresources; the rule
	// then does not cover the resource itself.
	Subresources []string `json:"subresources,omitempty"`
	// Verbs are get, list, create, update, patch, delete, or "*" for all. Apply
	// needs patch; an apply that creates an object also needs create.
	Verbs []string `json:"verbs"`
	// Namespaces and Names narrow the rule; if empty, the rule covers all.
	Namespaces []string `json:"namespaces,omitempty"`
	Names      []string `json:"names,omitempty"`
	// Fields, if given, are the only fields of an object that create, update
	// and patch may touch: "spec.replicas", "metadata.labels",
	// "spec.containers[name=app].image". Each covers everything below it
	// (abi/ABI.md, section 8).
	Fields []string `json:"fields,omitempty"`
}

// Limits bounds the resources of the module. If a limit is 0, the host decides.
// A module can only lower the limits of the host. See docs/limits.md.
type Limits struct {
	// Memory is the memory of one instance, in bytes.
	Memory int64 `json:"memory,omitempty"`
	// Timeout is the duration of one call, in milliseconds.
	Timeout int64 `json:"timeout,omitempty"`
	// HostCalls is the number of host calls in one call of the module.
	HostCalls int64 `json:"host_calls,omitempty"`
	// Fuel is the work of one call, about one unit for each instruction.
	Fuel int64 `json:"fuel,omitempty"`
	// Stack is the stack of one call, in bytes, as the host estimates it.
	Stack int64 `json:"stack,omitempty"`
	// LogLines bounds the log lines of the module in one second.
	LogLines int64 `json:"log_lines,omitempty"`
	// EventRate bounds the events of the module in one second.
	EventRate int64 `json:"event_rate,omitempty"`
	// APIRate is the number of requests to the API server in one second.
	APIRate int64 `json:"api_rate,omitempty"`
	// MetricSeries is the number of metric series of the module.
	MetricSeries int64 `json:"metric_series,omitempty"`
}

// described is a Manifest with the fields that the SDK adds.
type described struct {
	Manifest
	ABI int    `json:"abi"`
	SDK string `json:"sdk"`
	// Hooks names the optional exports that have a function. It is never nil,
	// because this SDK exports all entry points, used or not.
	Hooks    []string           `json:"hooks"`
	Webhooks []describedWebhook `json:"webhooks,omitempty"`
}

// describe returns the manifest of r in msgpack.
func describe(r *Reconciler) []byte {
	d := described{Manifest: r.Manifest, ABI: abiVersion, SDK: "go/" + Version, Hooks: r.hooks()}
	if d.For != nil {
		w := d.For.described()
		d.For = &w
	}
	d.Webhooks = d.describedWebhooks()
	d.Owns, d.Watches = describedAll(d.Owns), describedAll(d.Watches)
	if !slices.Contains(d.Requires, wire.CapOpaque) && !slices.Contains(d.Wants, wire.CapOpaque) {
		d.Wants = append(slices.Clip(d.Wants), wire.CapOpaque)
	}
	b, err := wire.Append(nil, d)
	if err != nil {
		panic("wasmctl.Register: manifest: " + err.Error())
	}
	return b
}

// hooks returns the names of the optional exports for which r has a function.
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
		{entry.Validate, slices.ContainsFunc(r.Manifest.Webhooks, func(w Webhook) bool { return w.Validate != nil })},
		{entry.Default, slices.ContainsFunc(r.Manifest.Webhooks, func(w Webhook) bool { return w.Default != nil })},
		{entry.Convert, len(r.Manifest.Conversions) > 0},
	} {
		if h.real {
			hooks = append(hooks, h.name)
		}
	}
	return hooks
}
