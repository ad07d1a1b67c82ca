// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// run is one run of one object, with its result so far. It belongs to one goroutine until it is freed.
type run struct {
	a   *Applier
	out Outcome

	object    []byte // as seen by the run; nil if the object is gone
	head      head
	guest     abi.Guest // nil before one is acquired
	known     *known    // nil before a guest is needed
	req       abi.Request
	startInfo Started

	wrote    awaited // the writes that the next run must wait for
	writeLog writeLog
	reading  Reading // nil if the run should not be remembered
}

// apply performs the complete run: waiting for writes, the checks before the guest is called, the call, and the bookkeeping.
func (r *run) apply(ctx context.Context) {
	r.awaitWrites(ctx)
	defer r.remember()
	step := r.look()
	if step == stepNone || r.quarantined() {
		return
	}
	r.out.Attempt = r.a.failures.get(r.out.Key).runs + 1
	if r.recalled(ctx, step) {
		r.end()
		return
	}
	r.out.ID = r.a.nextID()
	r.introduce(ctx)
	guest, release, err := r.a.cfg.Module.Acquire(&r.known.RunContext)
	if err != nil {
		if of, ok := errors.AsType[revisionError](err); ok {
			r.out.Revision = of.Revision()
		}
		r.fail(ctx, fmt.Errorf("acquire an instance: %w", err))
		return
	}
	defer release()
	r.guest, r.out.Revision = guest, guest.Revision()
	r.begin(ctx)
	r.work(&r.known.RunContext, step)
	r.out.Fuel = guest.Fuel()
	r.end()
}

// revisionError is the error of a revision that failed to provide a guest.
type revisionError interface {
	error
	Revision() uint64
}

// nextID returns an id that is unique in this process.
func (a *Applier) nextID() string {
	var digits [20]byte
	return a.idPrefix + string(strconv.AppendUint(digits[:0], a.runs.Add(1), 10))
}

// awaitWrites waits until the cache includes the writes of the last run (rule 22).
func (r *run) awaitWrites(ctx context.Context) {
	if r.a.cfg.Cache == nil || r.a.cfg.AwaitWrites < 0 {
		return
	}
	last := r.a.writes.take(r.out.Key)
	if len(last.list) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, r.a.cfg.AwaitWrites)
	defer cancel()
	r.out.Stale = r.a.cfg.Cache.AwaitWrites(bounded, last.list)
	r.out.Waited = time.Since(r.out.Started)
	if r.out.Stale {
		r.a.stale.Add(1)
		if time.Since(last.since) < awaitedFor {
			r.wrote = last // the run after this one must wait too
		}
	}
}

// look reads the object, now that the cache is sufficiently recent, and returns the first step of the run.
func (r *run) look() step {
	object := r.a.cfg.Lookup(r.out.Key)
	if object == nil {
		if r.a.cfg.Deletes {
			return stepReconcile
		}
		r.forget(ErrObjectNotFound)
		return stepNone
	}
	r.object, r.head = object.Msgpack(), headOf(object, r.a.cfg.Finalizer)
	if r.head.paused {
		r.a.guard.Forget(r.out.Key)
		r.out.Err = ErrPaused
		return stepNone
	}
	s := firstStep(r.a.cfg.Finalizer, &r.head)
	if s == stepNone {
		r.forget(ErrDeleting)
	}
	return s
}

// forget ends the run of an object that needs no further runs.
func (r *run) forget(why error) {
	r.out.Err = why
	r.wrote = awaited{}
	r.a.failures.forget(r.out.Key)
	r.a.guard.Forget(r.out.Key)
	if r.a.cfg.Memo != nil {
		r.a.cfg.Memo.Forget(r.out.Key)
	}
	r.healthy("")
}

// work calls the guest and carries out its result.
func (r *run) work(ctx context.Context, s step) {
	ctx, s, err := r.prepare(ctx, s)
	switch {
	case s == stepNone && r.head.paused:
		r.out.Err = ErrPaused
		return
	case s == stepNone:
		r.forget(ErrDeleting)
		return
	}
	var res abi.Result
	if err == nil {
		res, err = r.call(ctx, s)
	}
	if err == nil && s == stepFinalize && !res.Action.Requeue {
		err = r.removeFinalizer(ctx)
	}
	if err != nil {
		r.fail(ctx, err)
		return
	}
	r.a.failures.forget(r.out.Key)
	r.healthy("its last run succeeded")
	r.out.Action, r.out.DecidedBy = res.Action, DecidedByReconcile
	if r.reading != nil {
		r.reading.Commit(r.out.Revision, r.out.Action, time.Now())
	}
	if s == stepFinalize {
		r.out.DecidedBy = DecidedByFinalize
	}
}

// call calls the export of the step, and applies what its result declares. The error is that of the run.
func (r *run) call(ctx context.Context, s step) (abi.Result, error) {
	r.req = abi.Request{
		ID: r.out.ID, Controller: r.a.cfg.Controller, Attempt: r.out.Attempt, Key: r.out.Key, Object: r.object, Stale: r.out.Stale,
		Reason: r.out.Reasons.First, More: r.out.Reasons.More, Dropped: r.out.Reasons.Dropped,
	}
	r.out.Finalize = s == stepFinalize
	res, err := r.observed(ctx)
	if err != nil {
		return res, err
	}
	if res.Error == nil {
		return res, r.declare(ctx, res.Declared)
	}
	// A failed run may report its failure in the object's status. Its own error takes precedence; an error of writing the status is only
	// mentioned.
	if res.Declared != nil && res.Declared.Status != nil {
		if err := r.declare(ctx, &abi.Declared{Status: res.Declared.Status}); err != nil {
			return res, fmt.Errorf("%w (and: %w)", withStatusError(res.Error, err), err)
		}
	}
	return res, res.Error
}

// withStatusError returns the error of a run whose status could not be written because of err. An object with a permanent error waits for a
// change, and the status tells people which: until the status is written, the run is retried.
func withStatusError(failed *abi.ResultError, err error) *abi.ResultError {
	status, ok := errors.AsType[*abi.ResultError](err)
	if failed.Class != abi.ErrorPermanent || ok && status.Class == abi.ErrorPermanent {
		return failed
	}
	e := *failed
	e.Class = abi.ErrorTransient
	if ok && status.Class != "" {
		e.Class = status.Class
	}
	return &e
}

// declare applies what a result declares.
func (r *run) declare(ctx context.Context, d *abi.Declared) error {
	switch {
	case d == nil:
		return nil
	case r.a.cfg.Cluster == nil:
		return permanent("Unsupported", "the result declares objects (apply, prune, status), but this controller has no cluster")
	case r.object == nil:
		return permanent("ObjectNotFound", "the result declares objects (apply, prune, status), but their owner was deleted")
	}
	ctx, cancel := context.WithTimeout(ctx, r.a.cfg.ClusterTimeout)
	defer cancel()
	if err := r.a.cfg.Cluster.Declare(ctx, Owner{Revision: r.out.Revision, Object: r.object}, d); err != nil {
		return fmt.Errorf("declare: %w", err)
	}
	return nil
}

func permanent(reason, message string) error {
	return &abi.ResultError{Class: abi.ErrorPermanent, Reason: reason, Message: message}
}

// fail records a failed run and decides what should happen next.
func (r *run) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		r.out.Err = fmt.Errorf("%w: %w", ErrInterrupted, err)
		return
	}
	r.out.Err = err
	f := &abi.Failure{Kind: abi.FailureError}
	if e, ok := errors.AsType[*abi.ResultError](err); ok {
		f.Error = *e
	}
	if call, ok := errors.AsType[*abi.CallError](err); ok {
		f.Kind = call.Kind
	}
	kind := max(0, slices.Index(kinds[:], f.Kind)) // an unknown kind counts as an error
	r.a.byKind[kind].Add(1)
	r.out.Failure = kinds[kind]
	if f.Error.Message == "" {
		f.Error.Message = err.Error()
	}
	if f.Error.Class == "" {
		f.Error.Class = abi.ErrorTransient
	}
	row := r.a.failures.record(r.out.Key, time.Now(), &f.Error)
	f.ID, f.Key, f.Object, f.Attempt, f.FirstFailed = r.out.ID, r.out.Key, r.object, r.out.Attempt, row.first
	r.out.Action, r.out.DecidedBy = r.a.decide(ctx, r.guest, f, row.conflicts)
	r.quarantineFailure(err)
	if r.object == nil && !r.out.Action.Requeue {
		r.a.failures.forget(r.out.Key) // gone, and never requested again
	}
}

// Conflicts are retried quickly, up to MaxConflictRetries in a row. The delay is that of client-go's retry.DefaultRetry: the winning write
// must reach the cache, or the retry would fail again.
const (
	MaxConflictRetries = 3
	ConflictDelay      = 10 * time.Millisecond
)

// decide calls error_policy, once (rule 19), and decides. A permanent error waits for a change regardless of the policy (rule 18), and the
// first consecutive conflicts are retried quickly: an explicit class takes precedence over a policy that may treat all errors alike.
func (a *Applier) decide(ctx context.Context, guest abi.Guest, f *abi.Failure, conflicts int) (abi.Action, Decider) {
	var policy abi.Result
	err := abi.ErrNoErrorPolicy
	if guest != nil {
		policy, err = guest.ErrorPolicy(ctx, f)
	}
	switch {
	case f.Error.Class == abi.ErrorPermanent:
		return abi.Action{}, DecidedByError
	case f.Error.Class == abi.ErrorConflict && conflicts <= MaxConflictRetries && f.Error.After == 0:
		return abi.Action{Requeue: true, After: ConflictDelay}, DecidedByError
	case err == nil && policy.Error == nil:
		return policy.Action, DecidedByErrorPolicy
	case f.Error.After > 0:
		return abi.Action{Requeue: true, After: f.Error.After}, DecidedByError
	}
	return abi.Action{Requeue: true, After: a.cfg.Backoff.Delay(f.Attempt, rand.Float64())}, DecidedByBackoff
}
