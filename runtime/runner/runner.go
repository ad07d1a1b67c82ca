// SPDX-License-Identifier: Apache-2.0

// Package runner runs jobs until it is stopped: at most N at once, one per key, each when package scheduler makes it due.
//
// One goroutine, the loop, owns all decisions: the scheduler, the running jobs, the timer, readiness, pause and the state of a stop. None
// of this is shared, so none of it needs a lock. Each running job has its own goroutine, a worker, which reports to the loop and is reused
// for the next job.
//
//	requests --> loop --slot--> worker: job
//	              ^               |
//	              +---- done -----+   key and outcome, including the requeue
//
// A requeue is part of the done message. There is no second channel between jobs and the loop, so the deadlocks of two channels (kube-rs
// issue 926) cannot happen: the loop never waits for a job, and a job never waits for the loop.
package runner

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// The reasons for interrupting running jobs: the cause (context.Cause) of their context, also wrapped in the error of Run.
var (
	// ErrDrainTimeout means that a job did not end within Config.DrainTimeout after the stop.
	ErrDrainTimeout = errors.New("drain timeout exceeded")
	// ErrForced means that Input.Force was closed.
	ErrForced = errors.New("forced stop")
)

// Job runs one key, and returns what happens to the key next. An orderly stop does not cancel its context, so that the job can finish; the context is canceled when the drain timeout
// has passed or the stop is forced. The job must return soon after that, because Run waits for it.
//
// A job that panics, or that ends its goroutine with runtime.Goexit, is a bug of this program and not of a guest: it ends the process,
// with the key in the message. Jobs share goroutines one after the other, so a job must leave no state on its goroutine, such as a locked
// thread.
type Job[K comparable, M any] func(ctx context.Context, item scheduler.Item[K, M]) scheduler.Next[M]

// Input is the set of channels that a Runner listens to. It never closes any of them.
type Input[K comparable, M any] struct {
	// Requests carries requests in slices, so that one message can hold all requests of an event, or of a whole first listing. A slice is
	// scheduled in one turn of the loop, at about a microsecond for each request, and is not retained; the sender must not change it after
	// sending. A sender must stop when the context of Run ends, because nothing receives after that.
	//
	// Closing the channel means that no more requests will come: due requests are run, requeues and timers that are not due are discarded,
	// and Run returns. While the Runner is paused, Run waits.
	Requests <-chan []scheduler.Request[K, M]
	// Ready is closed when the first job may start (rule 10). Requests are received and deduplicated before that. Nil means ready at once.
	Ready <-chan struct{}
	// Force is closed to stop without waiting: running jobs are interrupted at once, whether or not a stop has begun. It may be nil. For a
	// command, the first signal ends the context of Run and the second closes Force; a third has no effect. If Force is the Done channel of
	// a context made with context.WithCancel, canceling it again is harmless.
	Force <-chan struct{}
}

// Runner runs one Job for the requested keys. Make one with New.
type Runner[K comparable, M any] struct {
	cfg       Config[M]
	job       Job[K, M]
	runCalled atomic.Bool                 // Run has been called
	ended     chan struct{}               // closed when the loop has ended
	notes     chan func(loop *loop[K, M]) // wakes the loop for a turn; a function that is not nil is called on the loop first
	paused    atomic.Bool
	figures
}

// New returns a Runner of a job. It starts nothing; the error is that of Config.Validate.
func New[K comparable, M any](cfg Config[M], job Job[K, M]) (*Runner[K, M], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Runner[K, M]{
		cfg: cfg.withDefaults(), job: job,
		ended: make(chan struct{}), notes: make(chan func(*loop[K, M]), 1),
		figures: figures{base: time.Now()},
	}, nil
}

// Run runs jobs until ctx ends or Input.Force or Input.Requests is closed, and returns when every job has ended (rule 9). It can be called
// only once.
//
// When ctx ends, no new job is started. Running jobs have Config.DrainTimeout to end; then they are interrupted: their context is canceled
// with ErrDrainTimeout, or with ErrForced as soon as Input.Force is closed.
//
// A job that does not return after its context was canceled prevents Run from returning, because nothing else may run a key while its job
// still runs (rule 1). Run logs the keys of such jobs every ten seconds. Jobs of the applier do return: a call into a guest ends with its
// context.
//
// The error is nil if all jobs ended by themselves. It wraps ErrDrainTimeout or ErrForced if jobs were interrupted, and ErrPoolFull if
// Config.Pool has no slot for one more Runner; in that case, nothing was run.
func (r *Runner[K, M]) Run(ctx context.Context, in Input[K, M]) error {
	if r.runCalled.Swap(true) {
		return errors.New("runner: Run was called before: make another runner with New")
	}
	defer close(r.ended)
	jobCtx, interrupt := context.WithCancelCause(context.WithoutCancel(ctx))
	defer interrupt(nil)
	l := newLoop(r, in, interrupt)
	defer l.timer.Stop()
	if err := l.join(); err != nil {
		return err
	}
	defer l.leave()
	for {
		l.start(ctx, jobCtx)
		l.publish()
		if l.finished() {
			break
		}
		l.arm()
		l.wait(ctx)
	}
	l.workers.close()
	return l.err
}

// Pause prevents jobs from starting until Resume. Running jobs continue; requests are received and merged, and their timers continue. No
// request that comes after Pause has returned starts; a job that the loop is just starting may. A stop does not wait for Resume. Pause may
// be called at any time, including before Run, and does not wait.
func (r *Runner[K, M]) Pause() { r.paused.Store(true) }

// Resume undoes Pause.
func (r *Runner[K, M]) Resume() {
	r.paused.Store(false)
	r.wake()
}

// Paused reports whether Pause prevents jobs from starting.
func (r *Runner[K, M]) Paused() bool { return r.paused.Load() }

// wake makes the loop take a turn. It does not wait: if the channel is full, the note in it has the same effect.
func (r *Runner[K, M]) wake() {
	select {
	case r.notes <- nil:
	default:
	}
}
