// Package applier carries out one reconcile: object, guest, action; or error,
// error_policy, action. Around that it keeps what a run may rely on: the cache
// has the writes of the run before (rule 22), the finalizer is there before the
// first reconcile and goes only after a finalize that succeeded (rule 21), what
// a result declares is applied, a paused object is left alone, and one that
// keeps triggering itself is held.
//
// An Applier owns no goroutine. The runner calls Apply from one goroutine per
// busy object; what they share is small tables, each with a lock of its own that
// is never held while a guest runs or a request is under way.
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

// Module is what a reconcile needs of a guest module. It is the seam between
// the runtime and the host.
type Module interface {
	// Acquire returns one guest for one reconcile; the caller must call release,
	// once, when it is done. It waits while all guests are in use, and returns
	// ctx's error when that ends first. abi.RunFrom(ctx) is the run: modules may
	// choose the guest by its object.
	Acquire(ctx context.Context) (guest abi.Guest, release func(), err error)
}

// Cluster is what a run asks of the API server on the guest's behalf. Objects
// are msgpack. An error that wraps an *abi.ResultError has
// that one's class; any other is transient. Each write that is accepted is told
// to abi.RunFrom(ctx).Wrote.
type Cluster interface {
	// Declare makes true what the result of a run declares: children, pruning,
	// status. Objects applied before an error stay.
	Declare(ctx context.Context, of Owner, d *abi.Declared) error
	// AddFinalizer adds the finalizer if nobody else has changed the object's
	// finalizers, and returns the object as it is then.
	AddFinalizer(ctx context.Context, object []byte, finalizer string) (updated []byte, err error)
	// RemoveFinalizer removes the finalizer, and nobody else's. An object that is
	// gone is no error.
	RemoveFinalizer(ctx context.Context, object []byte, finalizer string) error
	// Inspect reads the object that w wrote, as JSON with managedFields, from the
	// API server.
	Inspect(ctx context.Context, w abi.Write) ([]byte, error)
}

// Owner is the object whose run declared something.
type Owner struct {
	// Revision is that of the guest that ran.
	Revision uint64
	// Object is the msgpack of the object as the run sees it.
	Object []byte
}

// Cache is what a run asks of the controller's stores.
type Cache interface {
	// Version returns the resourceVersion of the object that w wrote, as it is in
	// the cache now; "" where it is not there. watched is false where none of the
	// controller's watches has such objects: then nobody waits for the write, and
	// it triggers nothing.
	Version(w *abi.Write) (resourceVersion string, watched bool)
	// AwaitWrites waits until the cache has the writes, or ctx ends; then it
	// returns true.
	AwaitWrites(ctx context.Context, writes []abi.Write) (stale bool)
}

// Lookup returns the object with this key, nil where the store has none.
type Lookup func(key abi.Key) Object

// Object is an object as the store has it, with what a run needs before it calls a
// guest: *reflector.Object is one.
type Object interface {
	Msgpack() []byte
	UID() string
	ResourceVersion() string
	// Deleting reports whether deletion was requested.
	Deleting() bool
	// Annotation returns the value of an annotation, and whether it is there.
	Annotation(key string) (value string, exists bool)
	// HasFinalizer reports whether the object has a finalizer of this name.
	HasFinalizer(name string) bool
}

// Defaults of Config.
const (
	// DefaultAwaitWrites is how long a run waits for the cache to have the writes
	// of the run before.
	DefaultAwaitWrites = 2 * time.Second
	// DefaultClusterTimeout is how long each step on the API server may take that
	// the guest does not do itself.
	DefaultClusterTimeout = 30 * time.Second
)

// Config says how to reconcile. Controller, Module and Lookup are needed; the
// rest has defaults.
type Config struct {
	// Controller is the controller's name, as guests and logs see it.
	Controller string
	// Module gives the guests.
	Module Module
	// Lookup gives the objects.
	Lookup Lookup
	// Deletes asks for a run without an object after an object is gone.
	Deletes bool
	// Finalizer is the name of the module's finalizer; empty where it has none.
	// With one, Cluster is needed, and the module must export finalize.
	Finalizer string
	// Cluster does what results declare; nil: a result that declares something is
	// a permanent error.
	Cluster Cluster
	// ClusterTimeout bounds each call of Cluster; zero is DefaultClusterTimeout.
	ClusterTimeout time.Duration
	// Cache says what the controller's stores have; nil: no run waits for the
	// writes of the one before, and no object is held.
	Cache Cache
	// AwaitWrites is how long a run waits for the writes of the one before (rule
	// 22); zero is DefaultAwaitWrites, negative does not wait.
	AwaitWrites time.Duration
	// Backoff decides where neither the guest nor its error_policy does.
	Backoff Backoff
	// Guard says when an object is in a hot loop.
	Guard guard.Config
	// Quarantine says when an object is left alone because its runs keep trapping
	// or reaching limits.
	Quarantine quarantine.Config
	// Memo skips runs that would change nothing; nil skips none.
	Memo Memo
	// Revision returns the revision of the module that runs an object; nil: an
	// object in quarantine does not learn that the module has changed.
	Revision func(abi.Key) uint64
	// Observer observes each run; it may be nil.
	Observer Observer
	// Wrote is called with each write of a run of an object that Cache watches; nil
	// is not.
	Wrote func(of abi.Key, w *abi.Write)
	// Logger gets one line for each hot loop that is found, and one when it is
	// over; nil drops them.
	Logger *slog.Logger
}

// Validate returns an error that names the first field with a value that cannot
// be used.
func (c Config) Validate() error {
	switch {
	case c.Controller == "" || c.Module == nil || c.Lookup == nil:
		return errors.New("controller, module and lookup are needed")
	case c.Finalizer != "" && c.Cluster == nil:
		return fmt.Errorf("finalizer %s: needs a cluster", c.Finalizer)
	case c.ClusterTimeout < 0:
		return errors.New("cluster timeout must not be negative")
	}
	if err := c.Backoff.validate(); err != nil {
		return err
	}
	if err := c.Quarantine.Validate(); err != nil {
		return err
	}
	return c.Guard.Validate()
}

// Applier reconciles the objects of one controller. It is safe for use by
// several goroutines, as long as no key is applied twice at once.
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
	byKind     [len(kinds)]atomic.Uint64 // failed runs, in the order of kinds
	spare      sync.Pool                 // of *run, for the next ones
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

// Apply runs one reconcile of key, which has been ready since readyAt (zero: not
// known), and says what happens next. It returns when the guest has returned; ctx
// interrupts it.
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

// kinds is every kind of failure.
var kinds = [...]abi.FailureKind{abi.FailureError, abi.FailureTrap, abi.FailureTimeout, abi.FailureMemory, abi.FailureOutput}

// Failures returns how many runs have failed until now, by kind (rule 17). A
// fault of the host, and what the API server did not accept of a result, count
// as errors.
func (a *Applier) Failures() map[abi.FailureKind]uint64 {
	counts := make(map[abi.FailureKind]uint64, len(kinds))
	for i, kind := range kinds {
		counts[kind] = a.byKind[i].Load()
	}
	return counts
}

// Stats is what an Applier has and did.
type Stats struct {
	// Runs counts the runs that were given to a guest, Stale those of them for
	// which the cache was late.
	Runs, Stale uint64
	// Failing is how many objects failed when they last ran, Quarantined how many
	// are in quarantine.
	Failing, Quarantined int
	// Awaited is how many writes the next runs of their objects will wait for.
	// Unawaited counts those that had no room in that table.
	Awaited   int
	Unawaited uint64
	// Loops are the hot loops.
	Loops guard.Stats
}

// Stats returns the present figures.
func (a *Applier) Stats() Stats {
	st := Stats{Runs: a.runs.Load(), Stale: a.stale.Load(), Failing: a.failures.len(), Loops: a.guard.Stats()}
	st.Awaited, st.Unawaited = a.writes.count()
	_, st.Quarantined = a.Quarantined(0)
	return st
}

// ObjectState is what is known of one object from its past runs.
type ObjectState struct {
	// FailedRuns counts the failed runs in a row, of which the first ended at
	// FirstFailed. LastError is the beginning of the last one's error.
	FailedRuns  int
	FirstFailed time.Time
	LastError   string
	// Awaited is how many writes the next run will wait for.
	Awaited int
	// Delay is how long the object is held after its runs, because it is in a hot
	// loop; else 0.
	Delay time.Duration
	// Quarantine is not nil for an object in quarantine.
	Quarantine *quarantine.State
}

// Object returns what is known of the object; the zero value for one that is
// well. It may be called at any time.
func (a *Applier) Object(key abi.Key) ObjectState {
	f := a.failures.get(key)
	st := ObjectState{FailedRuns: f.runs, FirstFailed: f.first, LastError: f.last, Awaited: a.writes.of(key), Delay: a.guard.Delayed(key)}
	a.quarantine.mu.Lock()
	defer a.quarantine.mu.Unlock()
	if state, ok := a.quarantine.table.Get(key); ok {
		st.Quarantine = &state
	}
	return st
}
