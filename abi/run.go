package abi

import (
	"context"
	"time"
)

// Run identifies the reconcile that is under way to both sides of the host
// functions. It travels in the context that the runtime gives to Guest, and the
// code that serves the guest's operations gets it back from there. It does not
// change after it is created, but for Cost; Wrote and Read are its callbacks.
type Run struct {
	// ID is the run's id, as the guest sees it.
	ID string
	// Key is the object that is reconciled.
	Key Key
	// Object is the msgpack of the object as the run sees it, or nil.
	Object []byte
	// Wrote, if not nil, is called after each write that the API server has
	// accepted, by the goroutine of the run, before the answer is given.
	Wrote func(Write)
	// Read, if not nil, is called for what the run gets from the host beside its
	// input, by the goroutine of the run.
	Read func(Read)
	// Cost, if not nil, is where the host adds up what the run costs. It belongs to
	// the goroutine of the run.
	Cost *Cost
}

// Cost is what a run has cost so far.
type Cost struct {
	// Guest is how long the guest computed, by the clock: what it waited for and the
	// host's work for it are not in it.
	Guest time.Duration
	// Idle is how long the run waited: for the API server, for a time slice, for the
	// rate limit of the module, asleep.
	Idle time.Duration
	// Answers is how many bytes the API server has answered, Requests how often.
	Answers  int64
	Requests int32
	// Result is how many bytes the longest result of the guest had.
	Result int32
}

// Read is something that a run has got from the host: the answer of an operation,
// or, without Op, what nobody can compare later.
type Read struct {
	Op Op
	// Request and Response are valid during the call only.
	Request  []byte
	Response Response
	Source   Source
}

// Source is a set of what differs each time that a guest asks.
type Source uint8

// The sources.
const (
	SourceClock  Source = 1 << iota // the time, or how long it sleeps
	SourceRandom                    // random bytes
	SourceLimit                     // what is left of a limit, and that it is reached
	SourceMetric                    // none, but a metric that it reports is counted
)

// Write is one write that the API server has accepted. A dry run is none.
type Write struct {
	Op                       Op
	Group, Version, Resource string
	Subresource              string
	Key                      Key
	// UID, ResourceVersion and Labels are those of the answer. The last two are
	// empty where a deletion answers with a Status.
	UID, ResourceVersion string
	Labels               map[string]string
	// Deleted says that the object is gone or waits for its finalizers.
	Deleted bool
	// FieldManager is the name that the write was sent under.
	FieldManager string
	// Body is the answer as the API server sent it: JSON, metadata.managedFields
	// included. It is valid during the call only.
	Body []byte
}

// Index is where a list of the cache looks for a value. Those of different scopes, and
// those with and without Of, do not see each other.
type Index struct {
	Scope       any // comparable
	Name, Value string
	// Of returns the values of an object; nil: the module tells them.
	Of func(object []byte) []string
}

// Idled adds up time in which the run waited. A nil run counts nothing.
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

// RunContext is the context that WithRun returns, for who has a place for it.
type RunContext struct {
	context.Context //nolint:containedctx // it is one

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
