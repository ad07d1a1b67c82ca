// SPDX-License-Identifier: Apache-2.0

// Package applier performs one reconcile: it gets the object, calls the guest, and determines the next action; after an error, error_policy
// decides it. It also guarantees what a run may rely on: the cache includes the writes of the previous run (rule 22); the finalizer is
// added before the first reconcile, and removed only after a successful finalize (rule 21); what a result declares is applied; a paused
// object is not reconciled; and an object that keeps triggering itself is delayed.
//
// An Applier owns no goroutine. The runner calls Apply from one goroutine per busy object. Their shared state is in small tables, each with
// its own lock, which is never held while a guest runs or a request is in progress.
package applier

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
	"github.com/wasmctl/wasmctl/runtime/applier/quarantine"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Module is the part of a guest module that a reconcile needs. It separates the runtime from the host.
type Module interface {
	// Acquire returns a guest for one reconcile; the caller must call release exactly once. It waits while all guests are in use, and
	// returns the error of ctx if that ends first. abi.RunFrom(ctx) is the run: a module may choose the guest by its object.
	Acquire(ctx context.Context) (guest abi.Guest, release func(), err error)
}

// Cluster performs the requests that a run makes to the API server on behalf of the guest. Objects are msgpack. An error that wraps an
// *abi.ResultError has its class; any other error is transient. Each accepted write is reported to abi.RunFrom(ctx).Wrote.
type Cluster interface {
	// Declare applies what the result of a run declares: children, pruning, status. Objects applied before an error remain.
	Declare(ctx context.Context, of Owner, d *abi.Declared) error
	// AddFinalizer adds the finalizer if the object's finalizers have not been changed meanwhile, and returns the updated object.
	AddFinalizer(ctx context.Context, object []byte, finalizer string) (updated []byte, err error)
	// RemoveFinalizer removes the finalizer, and no others. It is not an error if the object is gone.
	RemoveFinalizer(ctx context.Context, object []byte, finalizer string) error
	// Inspect reads the object that w wrote from the API server, as JSON with managedFields.
	Inspect(ctx context.Context, w abi.Write) ([]byte, error)
}

// Owner is the object whose run has declared something.
type Owner struct {
	// Revision is the revision of the guest that ran.
	Revision uint64
	// Object is the msgpack of the object as seen by the run.
	Object []byte
}

// Cache gives a run access to the controller's stores.
type Cache interface {
	// Version returns the resourceVersion that the object written by w has in the cache now, or "" if it is not there. watched is false if
	// no watch of the controller includes such objects: then no run waits for the write, and it triggers nothing.
	Version(w *abi.Write) (resourceVersion string, watched bool)
	// AwaitWrites waits until the cache includes the writes. If ctx ends first, it returns true.
	AwaitWrites(ctx context.Context, writes []abi.Write) (stale bool)
}

// Lookup returns the object with this key, or nil if the store has none.
type Lookup func(key abi.Key) Object

// Object is an object in the store, with the methods that a run needs before it calls a guest. It is implemented by *reflector.Object.
type Object interface {
	Msgpack() []byte
	UID() string
	ResourceVersion() string
	// Deleting reports whether deletion was requested.
	Deleting() bool
	// Annotation returns the value of an annotation, and whether it exists.
	Annotation(key string) (value string, exists bool)
	// HasFinalizer reports whether the object has a finalizer of this name.
	HasFinalizer(name string) bool
}

// Defaults of Config.
const (
	// DefaultAwaitWrites is how long a run waits until the cache includes the writes of the previous run.
	DefaultAwaitWrites = 2 * time.Second
	// DefaultClusterTimeout is the time limit of each request to the API server that the guest does not make itself.
	DefaultClusterTimeout = 30 * time.Second
)

// Config configures an Applier. Controller, Module and Lookup are required; the other fields have defaults.
type Config struct {
	// Controller is the name of the controller, as seen by guests and in logs.
	Controller string
	// Module provides the guests.
	Module Module
	// Lookup provides the objects.
	Lookup Lookup
	// Deletes requests a run without an object after an object was deleted.
	Deletes bool
	// Finalizer is the name of the module's finalizer, or empty if it has none. If it is set, Cluster is required, and the module must
	// export finalize.
	Finalizer string
	// Cluster applies what results declare. If nil, a result that declares something is a permanent error.
	Cluster Cluster
	// ClusterTimeout bounds each call of Cluster; zero is DefaultClusterTimeout.
	ClusterTimeout time.Duration
	// Cache gives access to the controller's stores. If nil, no run waits for the writes of the previous one, and the guard sees no writes.
	Cache Cache
	// AwaitWrites is how long a run waits for the writes of the previous one (rule 22). Zero means DefaultAwaitWrites; a negative value
	// means not to wait.
	AwaitWrites time.Duration
	// Backoff decides if neither the guest nor its error_policy does.
	Backoff Backoff
	// Guard configures the detection of hot loops.
	Guard guard.Config
	// Quarantine configures when an object is quarantined because its runs keep trapping or exceeding limits.
	Quarantine quarantine.Config
	// Memo skips runs that would change nothing. If nil, none is skipped.
	Memo Memo
	// Revision returns the revision of the module that runs an object. If nil, a change of the module does not end a quarantine.
	Revision func(abi.Key) uint64
	// Observer observes each run. It may be nil.
	Observer Observer
	// Wrote, if not nil, is called with each write of a run to an object that Cache watches.
	Wrote func(of abi.Key, w *abi.Write)
	// Logger logs the beginning and the end of each hot loop. If nil, nothing is logged.
	Logger *slog.Logger
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Controller == "" || c.Module == nil || c.Lookup == nil:
		return errors.New("config: Controller, Module and Lookup are required")
	case c.Finalizer != "" && c.Cluster == nil:
		return fmt.Errorf("finalizer[%s]: Cluster is required", c.Finalizer)
	case c.ClusterTimeout < 0:
		return errors.New("ClusterTimeout must not be negative")
	}
	if err := c.Backoff.validate(); err != nil {
		return err
	}
	if err := c.Quarantine.Validate(); err != nil {
		return err
	}
	return c.Guard.Validate()
}

// Applier reconciles the objects of one controller. It is safe for concurrent use, as long as no key is applied twice at once.
type Applier struct {
	cfg        Config
	failures   failures
	writes     writes
	quarantine quarantineState
	guard      *guard.Guard
	version    func(w *abi.Write) string // Cache.Version, for the guard
	idPrefix   string
	runs       atomic.Uint64
	stale      atomic.Uint64
	byKind     [len(kinds)]atomic.Uint64 // failed runs, indexed like kinds
	spare      sync.Pool                 // of *run, for reuse
}

// New returns an Applier. The error is that of Config.Validate.
func New(cfg Config) (*Applier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("applier: %w", err)
	}
	cfg.AwaitWrites = cmp.Or(cfg.AwaitWrites, DefaultAwaitWrites)
	cfg.ClusterTimeout = cmp.Or(cfg.ClusterTimeout, DefaultClusterTimeout)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	g, err := guard.New(cfg.Guard)
	if err != nil {
		return nil, fmt.Errorf("applier: %w", err)
	}
	var seed [4]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	version := func(w *abi.Write) string {
		version, _ := cfg.Cache.Version(w)
		return version
	}
	return &Applier{cfg: cfg, quarantine: quarantineState{table: quarantine.New(cfg.Quarantine)}, guard: g, version: version, idPrefix: hex.EncodeToString(seed[:]) + "-"}, nil
}

// Apply runs one reconcile of key and returns what should happen next. The key has been ready since readyAt (zero if unknown). Apply
// returns when the guest has returned; ctx interrupts it.
func (a *Applier) Apply(ctx context.Context, key abi.Key, reasons queue.Reasons, readyAt time.Time) Outcome {
	r := a.newRun(key, reasons)
	if !readyAt.IsZero() {
		r.out.Queued = max(0, r.out.Started.Sub(readyAt))
	}
	r.apply(ctx)
	r.out.Duration = time.Since(r.out.Started)
	if a.cfg.Observer != nil {
		a.cfg.Observer.Ended(&r.out)
	}
	return r.free()
}

// kinds are all kinds of failures.
var kinds = [...]abi.FailureKind{abi.FailureError, abi.FailureTrap, abi.FailureTimeout, abi.FailureMemory, abi.FailureOutput}

// Failures returns the number of failed runs so far, by kind (rule 17). Faults of the host, and results that the API server rejected, count
// as errors.
func (a *Applier) Failures() map[abi.FailureKind]uint64 {
	counts := make(map[abi.FailureKind]uint64, len(kinds))
	for i, kind := range kinds {
		counts[kind] = a.byKind[i].Load()
	}
	return counts
}

// Stats is a snapshot of the state and counters of an Applier.
type Stats struct {
	// Stale counts the runs for which the cache was late.
	Stale uint64
	// Failing is the number of objects whose last run failed; Quarantined is the number of objects in quarantine.
	Failing, Quarantined int
	// Loops are the statistics of hot loops.
	Loops guard.Stats
}

// Stats returns the current figures.
func (a *Applier) Stats() Stats {
	st := Stats{Stale: a.stale.Load(), Failing: a.failures.len(), Loops: a.guard.Stats()}
	_, st.Quarantined = a.Quarantined(0)
	return st
}

// ObjectState is what the Applier remembers of an object from its past runs.
type ObjectState struct {
	// FailedRuns is the number of consecutive failed runs, the first of which ended at FirstFailed.
	FailedRuns  int
	FirstFailed time.Time
	// Loop is the hot loop of the object; its Cause is guard.CauseNone if the object is in none.
	Loop guard.State
	// Quarantine is not nil if the object is in quarantine.
	Quarantine *quarantine.State
}

// Object returns the state of an object; it is the zero value for a healthy one. It may be called at any time.
func (a *Applier) Object(key abi.Key) ObjectState {
	f := a.failures.get(key)
	st := ObjectState{FailedRuns: f.runs, FirstFailed: f.first, Loop: a.guard.State(key)}
	a.quarantine.mu.Lock()
	defer a.quarantine.mu.Unlock()
	if state, ok := a.quarantine.table.Get(key); ok {
		st.Quarantine = &state
	}
	return st
}

// Hot returns up to limit objects in hot loops, in the order of their keys. It may be called at any time.
func (a *Applier) Hot(limit int) []guard.State { return a.guard.Hot(limit) }
