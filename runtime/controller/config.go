package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
	"github.com/wasmctl/wasmctl/runtime/applier/quarantine"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Config says what a controller reconciles, and with what. Name, For, Module
// and Watches are needed; the rest has defaults.
type Config struct {
	// Name is the controller's name in logs and for guests.
	Name string
	// For is the kind that is reconciled. Its Map and Owned are not read.
	For Watch
	// Related are the other kinds whose events lead to reconciles of For's
	// objects. More can be added while the controller runs.
	Related []Watch
	// Triggers lead to reconciles for other reasons than events.
	Triggers []trigger.Source
	// Deletes asks for a reconcile, without an object, after an object of For is
	// gone.
	Deletes bool
	// Finalizer is the module's finalizer; empty where it has none (rule 21).
	Finalizer string
	// Module does the reconciling.
	Module applier.Module
	// Hooks are the guest's map and filter. Nil where no watch asks for them.
	Hooks queue.Module
	// Cluster carries out what runs declare, and finalizers. It may be nil where
	// the module does neither.
	Cluster applier.Cluster
	// Watches has the watches, which controllers share.
	Watches *watcher.Set
	// Cache is filled by the controller's watches; nil makes one. It belongs to
	// this controller alone.
	Cache *Cache

	// Concurrency is how many objects are reconciled at a time; 0 is
	// runner.DefaultConcurrency.
	Concurrency int
	// Pool bounds the workers of all controllers of the process; nil does not.
	Pool *runner.Pool
	// Debounce waits for the triggers of one object to calm down (rule 6).
	Debounce scheduler.Debounce
	// DrainTimeout is how long running reconciles may go on after a stop; 0 is
	// runner.DefaultDrainTimeout.
	DrainTimeout time.Duration
	// Backoff is the host's back-off (rule 19).
	Backoff applier.Backoff
	// AwaitWrites is how long a run waits for the cache to have the writes of the
	// object's previous run (rule 22); 0 is applier.DefaultAwaitWrites, negative
	// does not wait.
	AwaitWrites time.Duration
	// Guard says when an object is in a hot loop.
	Guard guard.Config
	// Quarantine says when an object is left alone because its runs keep trapping
	// or reaching limits. Revision returns the revision of the module that runs
	// an object; nil: a new one does not end quarantines.
	Quarantine quarantine.Config
	Revision   func(abi.Key) uint64
	// Memo skips runs that would change nothing; nil skips none.
	Memo applier.Memo
	// Slots splits the objects between replicas; nil: this one runs all of them.
	Slots *Slots
	// Active is closed when reconciles may start: this process has been elected.
	// Until then watches sync and the queue fills. Nil is at once.
	Active <-chan struct{}

	// OnStart and OnEnd are those of runner.Config, for metrics.
	OnStart func(queued time.Duration, priority scheduler.Priority)
	OnEnd   func(took time.Duration)
	// Observer observes each run; it may be nil.
	Observer applier.Observer
	// OnHidden is notified of each event of For's objects that predicates have
	// hidden, and which of them saw no change. It is called by the goroutines of
	// the watches and must be quick. Nil drops it.
	OnHidden func(ref reflector.ObjectRef, unchanged predicate.Words)
	// OnRelated is notified of each change of an object of another kind than For's
	// that concerns objects, or that the guest is asked about, before those are
	// requested. Resource is as in the reason of the requests. It must not block,
	// and several goroutines call it at once; it can be nil.
	OnRelated func(resource string, ev reflector.Event)
	// Logger is notified of progress; nil drops it.
	Logger *slog.Logger
}

// Validate returns every reason why the config cannot be used, joined.
func (c *Config) Validate() error {
	var errs []error
	if c.Name == "" {
		errs = append(errs, errors.New("name is needed"))
	}
	if c.Module == nil || c.Watches == nil {
		errs = append(errs, errors.New("module and watches are needed"))
	}
	errs = append(errs, c.For.check("for"))
	for i := range c.Related {
		errs = append(errs, c.checkRelated(fmt.Sprintf("related[%d]", i), &c.Related[i]))
	}
	if c.Concurrency < 0 || c.DrainTimeout < 0 {
		errs = append(errs, errors.New("concurrency and drain timeout must not be negative"))
	}
	return errors.Join(errs...)
}

func (w *Watch) check(where string) error {
	if w.Resource.Resource == "" || w.Kind.Kind == "" {
		return fmt.Errorf("%s: resource and kind are needed", where)
	}
	return nil
}

func (c *Config) checkRelated(where string, w *Watch) error {
	if w.Map == nil && c.Hooks == nil && w.Hooks == nil {
		return fmt.Errorf("%s: a mapper is needed, or hooks for the guest's map", where)
	}
	return w.check(where)
}
