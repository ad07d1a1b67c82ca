// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"context"
	"time"
)

// Run identifies the current reconcile to both sides of the host functions. It travels in the context that the runtime passes to Guest,
// where the code that serves the guest's operations finds it. It is immutable, except for Cost; Wrote and Read are its callbacks.
type Run struct {
	// ID is the run's id, as seen by the guest.
	ID string
	// Key is the reconciled object.
	Key Key
	// Object is the msgpack of the object as seen by the run, or nil. Its uid identifies the object that the run is about: a later object
	// with the same key has another one.
	Object []byte
	// Wrote, if not nil, is called after each write that the API server has accepted, on the goroutine of the run, before the response is
	// returned.
	Wrote func(Write)
	// Read, if not nil, is called on the goroutine of the run for all data that the run gets from the host in addition to its input.
	Read func(Read)
	// Cost, if not nil, accumulates the cost of the run. It belongs to the goroutine of the run.
	Cost *Cost
}

// Cost is the cost of a run so far.
type Cost struct {
	// Guest is the elapsed time that the guest computed, excluding waits and the host's work.
	Guest time.Duration
	// Idle is how long the run waited: for the API server, for a time slice, for the rate limit of the module, or sleeping.
	Idle time.Duration
	// Answers is the number of bytes in responses of the API server; Requests is the number of requests.
	Answers  int64
	Requests int32
	// Result is the length of the guest's longest result in bytes.
	Result int32
}

// Read is something that a run got from the host: the response of an operation or, if Op is empty, data that cannot be compared later.
type Read struct {
	Op Op
	// Request and Response are valid only during the call.
	Request  []byte
	Response Response
	Source   Source
}

// Source is a set of inputs that differ for each call.
type Source uint8

// The sources.
const (
	SourceClock  Source = 1 << iota // the time, or the duration of a sleep
	SourceRandom                    // random bytes
	SourceLimit                     // the remainder of a limit, or its being exceeded
	SourceMetric                    // not an input: a reported metric, which must be counted
)

// Write is one write that the API server has accepted. Dry runs are not writes.
type Write struct {
	Op                       Op
	Group, Version, Resource string
	Subresource              string
	Key                      Key
	// UID, ResourceVersion and Labels are those of the response. The last two are empty if a deletion returned a Status.
	UID, ResourceVersion string
	Labels               map[string]string
	// Deleted means that the object is gone or waits for its finalizers.
	Deleted bool
	// FieldManager is the field manager of the write.
	FieldManager string
	// Body is the response of the API server: JSON, including metadata.managedFields. It is valid only during the call.
	Body []byte
}

// Stored is an object in the cache of a controller.
type Stored interface {
	UID() string
	ResourceVersion() string
	// Msgpack returns the object in the format of AppendValue.
	Msgpack() []byte
	// Applied returns the fields that were applied, as package internal/managed has them for the uid of the controlling owner,
	// or "" if that is not known.
	Applied() string
}

// Index is an index lookup for a list of the cache. Indexes of different scopes are independent, and so are those with and without Of.
type Index struct {
	Scope       any // comparable
	Name, Value string
	// Of returns the values of an object. If nil, the module provides them.
	Of func(object []byte) []string
}

// Idled adds time that the run waited. A nil run is ignored.
func (r *Run) Idled(wait time.Duration) {
	if r != nil && r.Cost != nil {
		r.Cost.Idle += wait
	}
}

type runKey struct{}

// WithRun returns a context that carries run.
func WithRun(ctx context.Context, run *Run) context.Context {
	return &RunContext{Context: ctx, Run: run}
}

// RunContext is the context that WithRun returns. It is exported for callers that embed it in a larger allocation.
type RunContext struct {
	context.Context // it is a context

	Run *Run
}

// Value implements context.Context.
func (c *RunContext) Value(key any) any {
	if key == (runKey{}) {
		return c.Run
	}
	return c.Context.Value(key)
}

// RunFrom returns the run that ctx carries, or nil.
func RunFrom(ctx context.Context) *Run {
	run, _ := ctx.Value(runKey{}).(*Run)
	return run
}
