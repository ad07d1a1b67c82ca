// Package runner runs jobs: at most N at once, one per key, each when it is due by package scheduler, until it is stopped.
//
// One goroutine, the loop, owns all decisions: the scheduler, who is running, the timer, readiness, pause and the state of a stop. Nothing
// of that is shared, so nothing of it has a lock. Each running job has a goroutine of its own, a worker, which reports to the loop and is
// used again for the next job.
//
//	requests --> loop --slot--> worker: job
//	              ^               |
//	              +---- done -----+   key, outcome, and with it the requeue
//
// A requeue travels in the done message. There is no second channel between jobs and loop, and so none of the deadlocks that two
// channels can have (kube-rs issue 926): the loop never waits for a job, and a job never waits for the loop.
package runner

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// Why running jobs were interrupted: the cause (context.Cause) of their context, and wrapped in the error of Run.
var (
	// ErrDrainTimeout is the cause when a job did not end within Config.DrainTimeout after the stop.
	ErrDrainTimeout = errors.New("drain timeout exceeded")
	// ErrForced is the cause when Input.Force was closed.
	ErrForced = errors.New("forced stop")
)

// Job runs one key. Its context is not cancelled by an orderly stop, so that it can finish; it is cancelled when the drain timeout has
// passed or the stop is forced. Then the job must return soon: Run waits for it.
//
// A job that panics, or that ends its goroutine with runtime.Goexit, is a bug of this program and not of a guest: it ends the process,
// with the key in the message. Jobs run by turns on the same goroutines, so one must leave nothing behind on its own, such as a locked thread.
type Job[K comparable, M any] func(ctx context.Context, item scheduler.Item[K, M]) Outcome[M]

// Outcome is what is to happen to a key after its job. The zero value awaits the next request.
type Outcome[M any] struct {
	// Requeue asks for another run of the key, no sooner than After from the end of this one (rule 25). A request that is due sooner
	// absorbs it (rule 3). Zero or less is at once, behind what is ready. A debounce does not delay it.
	Requeue bool
	After   time.Duration
	// Msg and Priority are those of the requeue.
	Msg      M
	Priority scheduler.Priority
	// Delay keeps the key from starting again before this much time after the end of this run, whatever asks for it: requests and the
	// requeue wait and are merged meanwhile. It is for keys that would otherwise run without end; zero or less does not hold.
	Delay time.Duration
}

// Input is what a Runner listens to. It never closes any of these channels.
type Input[K comparable, M any] struct {
	// Requests brings the requests in slices, so that one message can carry what one event maps to, or a whole first listing. A slice is
	// scheduled in one turn of the loop, at about a microsecond for each request, and is not kept; the sender must not change it after
	// sending. A sender must stop when the context of Run ends: there is no receiver then.
	//
	// Closing it says that no more requests will come: what is due is run, requeues and timers that are not due are dropped, Run returns.
	// While the Runner is paused, Run waits.
	Requests <-chan []scheduler.Request[K, M]
	// Ready is closed when the first job may start (rule 10). Requests are taken and deduplicated before that. Nil is ready at once.
	Ready <-chan struct{}
	// Force is closed to stop without waiting: running jobs are interrupted at once, whether or not a stop has begun. Nil never forces.
	// For a command: the first signal ends the context of Run, the second closes Force, and a third finds nothing left to do. With
	// context.WithCancel and Force being its Done channel, cancelling again is harmless.
	Force <-chan struct{}
}

// Runner runs one Job for the keys that it is asked to run. Make one with New.
type Runner[K comparable, M any] struct {
	cfg       Config[M]
	job       Job[K, M]
	runCalled atomic.Bool                 // Run has been called
	ended     chan struct{}               // closed when the loop has ended
	notes     chan func(loop *loop[K, M]) // asks the loop to take a turn, and nil or something to call on it first
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

// Run runs jobs until ctx ends, Input.Force or Input.Requests is closed, and returns when every job has ended (rule 9). A Runner runs once.
//
// When ctx ends, nothing new is started. Running jobs have Config.DrainTimeout to end; then they are interrupted: their context is
// cancelled with ErrDrainTimeout, or with ErrForced as soon as Input.Force is closed.
//
// A job that does not return after its context was cancelled keeps Run from returning, because a key whose job still runs must not be
// run by anyone else (rule 1). Run logs the keys of such jobs every ten seconds. The applier keeps its jobs to the rule: the calls into
// a guest end when their context does.
//
// The error is nil if all jobs ended by themselves. It wraps ErrDrainTimeout or ErrForced if some were interrupted, and ErrPoolFull if
// Config.Pool has no slot for one more Runner; then nothing was run.
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

// Pause keeps jobs from starting until Resume. Those that run go on; requests are taken and merged, and their timers go on. Requests after
// Pause has returned do not start; a job that the loop was just starting may. A stop does not wait for Resume. It may be called at any
// time, also before Run, and does not wait.
func (r *Runner[K, M]) Pause() { r.paused.Store(true) }

// Resume undoes Pause.
func (r *Runner[K, M]) Resume() {
	r.paused.Store(false)
	r.wake()
}

// Paused says whether jobs are kept from starting by Pause.
func (r *Runner[K, M]) Paused() bool { return r.paused.Load() }

// wake makes the loop take a turn. It does not wait: if there is no room for the note, one is there that does the same.
func (r *Runner[K, M]) wake() {
	select {
	case r.notes <- nil:
	default:
	}
}
