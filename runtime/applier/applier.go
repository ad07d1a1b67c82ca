// Package applier carries out one reconcile: object, guest, action; or error,
// error_policy, action.
//
// An Applier owns no goroutine. The runner calls Apply from one goroutine per
// busy object; what they share is the table of failures, and a module.
package applier

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Module is what a reconcile needs of a guest module. It is the seam between
// the runtime and the host.
type Module interface {
	// Acquire returns one guest for one reconcile; the caller must call release,
	// once, when it is done. It waits while all guests are in use, and returns
	// ctx's error when that ends first.
	Acquire(ctx context.Context) (guest abi.Guest, release func(), err error)
}

// ErrObjectNotFound is the outcome for an object that is gone: the module is
// not called (rule 20, as in kube-rs). It is not a failure.
var ErrObjectNotFound = errors.New("object not found")

// ErrInterrupted is the outcome of a run that was cut short because the
// process stops. It is not a failure of the object.
var ErrInterrupted = errors.New("interrupted: the controller is stopping")

// Lookup returns the msgpack of the object with this key, and false where the
// store has none.
type Lookup func(key abi.Key) (object []byte, ok bool)

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
	// Backoff decides where neither the guest nor its error_policy does.
	Backoff Backoff
}

// Outcome is what one reconcile came to.
type Outcome struct {
	// ID is the run's id, as the guest saw it.
	ID string
	// Key is the object that was reconciled, Reason why it was.
	Key    abi.Key
	Reason abi.Reason
	// Attempt is 1 for a first run and one more after each failed run.
	Attempt int
	// Generation is the module generation that ran; 0 where none did.
	Generation uint64
	// Action is what happens next.
	Action abi.Action
	// DecidedBy says who chose Action.
	DecidedBy Decider
	// Err is nil for success, ErrObjectNotFound, ErrInterrupted, or what went
	// wrong: an *abi.ResultError, an *abi.CallError, or a fault of the host.
	Err error
	// Unknown lists keys of the guest's result that this host does not know.
	Unknown []string
	// Duration is how long the run took, error_policy included.
	Duration time.Duration
}

// Failed reports whether the run counts as a failed one: it has an error, and
// that error is not that the object is gone or that the controller stops.
func (o *Outcome) Failed() bool {
	return o.Err != nil && !errors.Is(o.Err, ErrObjectNotFound) && !errors.Is(o.Err, ErrInterrupted)
}

// Decider names who chose the action of an outcome.
type Decider string

// The deciders.
const (
	DecidedByReconcile   Decider = "reconcile"
	DecidedByErrorPolicy Decider = "error_policy"
	DecidedByError       Decider = "error"   // the error itself: permanent, or with a time to come back
	DecidedByBackoff     Decider = "backoff" // the host's
)

// Applier reconciles the objects of one controller. It is safe for use by
// several goroutines, as long as no key is applied twice at once.
type Applier struct {
	cfg      Config
	failures failures
	idPrefix string
	runs     atomic.Uint64
	byKind   [5]atomic.Uint64 // failed runs, in the order of kinds
}

// kinds is every kind of failure.
var kinds = [...]abi.FailureKind{abi.FailureError, abi.FailureTrap, abi.FailureTimeout, abi.FailureMemory, abi.FailureOutput}

// Failures returns how many runs have failed until now, by kind (rule 17). A
// fault of the host counts as an error.
func (a *Applier) Failures() map[abi.FailureKind]uint64 {
	counts := make(map[abi.FailureKind]uint64, len(kinds))
	for i, kind := range kinds {
		counts[kind] = a.byKind[i].Load()
	}
	return counts
}

// New returns an Applier.
func New(cfg Config) (*Applier, error) {
	if cfg.Controller == "" || cfg.Module == nil || cfg.Lookup == nil {
		return nil, errors.New("applier: controller, module and lookup are needed")
	}
	if err := cfg.Backoff.validate(); err != nil {
		return nil, fmt.Errorf("applier: %w", err)
	}
	var seed [4]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	return &Applier{cfg: cfg, idPrefix: hex.EncodeToString(seed[:]) + "-"}, nil
}

// Apply runs one reconcile of key and says what happens next. It returns when
// the guest has returned; ctx interrupts it.
func (a *Applier) Apply(ctx context.Context, key abi.Key, reason abi.Reason) Outcome {
	start := time.Now()
	out := Outcome{Key: key, Reason: reason}
	a.apply(ctx, &out)
	out.Duration = time.Since(start)
	return out
}

func (a *Applier) apply(ctx context.Context, out *Outcome) {
	object, found := a.cfg.Lookup(out.Key)
	if !found && !a.cfg.Deletes {
		a.failures.forget(out.Key)
		out.Err = ErrObjectNotFound
		return
	}
	out.ID = a.idPrefix + strconv.FormatUint(a.runs.Add(1), 10)
	out.Attempt = a.failures.attempt(out.Key)
	guest, release, err := a.cfg.Module.Acquire(ctx)
	if err != nil {
		a.fail(ctx, out, nil, &abi.Failure{Kind: abi.FailureError, Object: object}, fmt.Errorf("acquire a guest: %w", err))
		return
	}
	defer release()
	out.Generation = guest.Generation()
	res, err := guest.Reconcile(ctx, &abi.Request{
		ID: out.ID, Controller: a.cfg.Controller, Reason: out.Reason, Attempt: out.Attempt, Key: out.Key, Object: object,
	})
	out.Unknown = res.Unknown
	if err == nil && res.Error == nil {
		a.failures.forget(out.Key)
		out.Action, out.DecidedBy = res.Action, DecidedByReconcile
		return
	}
	failure := &abi.Failure{Kind: abi.FailureError, Object: object}
	if err == nil {
		failure.Error, err = *res.Error, res.Error
	}
	a.fail(ctx, out, guest, failure, err)
}

// fail records a failed run and decides what happens next. guest is nil where
// none could be had.
func (a *Applier) fail(ctx context.Context, out *Outcome, guest abi.Guest, failure *abi.Failure, err error) {
	if ctx.Err() != nil {
		out.Err = fmt.Errorf("%w: %w", ErrInterrupted, err)
		return
	}
	out.Err = err
	if call, ok := errors.AsType[*abi.CallError](err); ok {
		failure.Kind = call.Kind
	}
	a.byKind[max(0, slices.Index(kinds[:], failure.Kind))].Add(1) // a kind without a place counts as an error
	if failure.Error.Message == "" {
		failure.Error.Message = err.Error()
	}
	if failure.Error.Class == "" {
		failure.Error.Class = abi.ErrorTransient
	}
	failure.ID, failure.Key, failure.Attempt = out.ID, out.Key, out.Attempt
	failure.FirstFailed = a.failures.record(out.Key, time.Now())
	out.Action, out.DecidedBy = a.decide(ctx, guest, failure)
}

// decide asks error_policy, once (rule 19). A permanent error waits for a
// change whatever the policy says (rule 18).
func (a *Applier) decide(ctx context.Context, guest abi.Guest, f *abi.Failure) (abi.Action, Decider) {
	var policy abi.Result
	err := abi.ErrNoErrorPolicy
	if guest != nil {
		policy, err = guest.ErrorPolicy(ctx, f)
	}
	switch {
	case f.Error.Class == abi.ErrorPermanent:
		return abi.Action{}, DecidedByError
	case err == nil && policy.Error == nil:
		return policy.Action, DecidedByErrorPolicy
	case f.Error.After > 0:
		return abi.Action{Requeue: true, After: f.Error.After}, DecidedByError
	}
	return abi.Action{Requeue: true, After: a.cfg.Backoff.Delay(f.Attempt, rand.Float64())}, DecidedByBackoff
}
