// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"time"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Context belongs to one run of one object, or to one call of a Mapper, a
// Filter or Configure, which have no object. It is valid until that run or call
// ends.
type Context struct {
	g      *guest
	in     input
	client Client
	cache  Cache
	log    Logger
}

// ReasonType is the type of a trigger.
type ReasonType string

// The reasons that this SDK knows. A newer host may send others.
const (
	ReasonListed        ReasonType = "Listed"        // the object existed when its watch started, or a relist found it
	ReasonObjectUpdated ReasonType = "ObjectUpdated" // the object was created or changed
	ReasonObjectDeleted ReasonType = "ObjectDeleted" // the object was deleted
	ReasonRelated       ReasonType = "Related"       // an object that the object owns or refers to changed
	ReasonRequeue       ReasonType = "Requeue"       // the last run of the object asked for another
	ReasonRetry         ReasonType = "Retry"         // the last run of the object failed
	ReasonModuleSwapped ReasonType = "ModuleSwapped" // the module was replaced
	ReasonTriggered     ReasonType = "Triggered"     // a user or a program asked for a run
	ReasonResync        ReasonType = "Resync"        // a period or a schedule asked for all objects
	ReasonConfigChanged ReasonType = "ConfigChanged" // the settings were changed
)

// Reason is the trigger of a run. Resource ("deployments.apps") and Ref name
// the related object for ReasonRelated.
type Reason struct {
	Type     ReasonType
	Resource string
	Ref      ObjectKey
}

// ID returns the run's unique id, which also appears in the host's logs.
func (c *Context) ID() string { return Value{c.in.id}.String() }

// Controller returns the controller's name. It is empty in ErrorPolicy.
func (c *Context) Controller() string { return Value{c.in.controller}.String() }

// Key returns the name of the object that is reconciled.
func (c *Context) Key() ObjectKey { return objectKey(c.in.key) }

// Reason returns the first trigger of the run. It is for people. A reconciler
// must not base decisions on it, because triggers are merged, and get lost if
// the host stops. It is empty in ErrorPolicy.
func (c *Context) Reason() Reason { return readReason(Value{c.in.reason}) }

// Reasons returns the triggers of the run in their order, and the number of
// further triggers that the host did not record.
func (c *Context) Reasons() (reasons []Reason, dropped int) {
	if first := c.Reason(); first.Type != "" {
		reasons = append(reasons, first)
	}
	for _, v := range (Value{c.in.reasons}).Elements() {
		reasons = append(reasons, readReason(v))
	}
	return reasons, c.in.reasonsDropped
}

func readReason(v Value) Reason {
	return Reason{Type: ReasonType(v.String("type")), Resource: v.String("resource"), Ref: objectKey(v.At("ref").view)}
}

// String returns the reason in the form of the host's logs: "Related
// deployments.apps default/web".
func (r Reason) String() string {
	if r.Resource == "" {
		return string(r.Type)
	}
	return string(r.Type) + " " + r.Resource + " " + r.Ref.String()
}

// Attempt returns 1 for the first run, and increases by one after each failed
// run of this object. In ErrorPolicy it is the attempt of the failed run.
func (c *Context) Attempt() int { return c.in.attempt }

// Deadline returns the time at which the host interrupts the run, or false if
// the run has no time limit.
func (c *Context) Deadline() (time.Time, bool) {
	return time.UnixMilli(c.in.deadlineMS), c.in.deadlineMS != 0
}

// DryRun reports whether this is a dry run, in which the host carries out no
// writes.
func (c *Context) DryRun() bool { return c.in.dryRun }

// Stale reports whether the host's cache did not reach the writes of this
// object's previous run in time. The object may then be older than those
// writes.
func (c *Context) Stale() bool { return c.in.stale }

// ConfigGeneration returns the number of the current settings: 1 at first, and
// one more after each change.
func (c *Context) ConfigGeneration() int64 { return c.in.configGen }

// HostHas reports whether the host has an optional ability, "cache_get" for
// example.
func (c *Context) HostHas(capability string) bool {
	for it := wire.Walk(c.in.caps); it.Next(); {
		if s, ok := wire.StringBytes(it.Value); ok && string(s) == capability {
			return true
		}
	}
	return false
}

// Cancelled reports whether the host is stopping. If so, finish soon, or return
// Requeue.
func (c *Context) Cancelled() bool { return c.g.host.Cancelled() }

// Now returns the host's time, in milliseconds. Prefer it to time.Now: tests
// can set it, and it works on every target.
func (c *Context) Now() time.Time { return time.UnixMilli(c.g.host.NowMS()) }

// Client returns the client of the Kubernetes API.
func (c *Context) Client() *Client { return &c.client }

// Cache returns the host's copies of the watched objects.
func (c *Context) Cache() *Cache { return &c.cache }

// Log returns the logger. The host adds the controller, the object and the
// run's id to each line.
func (c *Context) Log() *Logger { return &c.log }

func objectKey(view []byte) ObjectKey {
	v := Value{view}
	return ObjectKey{Namespace: v.String("namespace"), Name: v.String("name")}
}
