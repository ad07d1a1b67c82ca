// Package runner runs jobs: at most N at once, one per key, each when package scheduler says so, until told to stop.
//
// One goroutine, the loop, owns all decisions: the scheduler, who is running, the timer, readiness and the state of a stop. Nothing of that
// is shared, so nothing of it has a lock. Each busy key has one goroutine more, which runs the job and reports to the loop.
//
//	requests --> loop --go--> job
//	              ^            |
//	              +---- done --+   key, outcome, and with it the requeue
//
// A requeue travels in the done message. There is no second channel between jobs and loop, and so none of the deadlocks that two
// channels can have (kube-rs issue 926): the loop never waits for a job, and a job never waits for the loop.
package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// Defaults and limits of Config.
const (
	DefaultConcurrency  = 4
	DefaultDrainTimeout = 30 * time.Second
	// MaxConcurrency is far above what an API server bears from one controller; it keeps a slip of the finger from being "unbounded".
	MaxConcurrency = 10_000
)

// Why running jobs were interrupted: the cause (context.Cause) of their context, and wrapped in the error of Run.
var (
	// ErrDrainTimeout is the cause when a job did not end within Config.DrainTimeout after the stop.
	ErrDrainTimeout = errors.New("drain timeout passed")
	// ErrForced is the cause when Input.Force was closed.
	ErrForced = errors.New("stop was forced")
)

// Job runs one key. Its context is not cancelled by an orderly stop, so that it can finish; it is cancelled when the drain timeout has
// passed or the stop is forced. Then the job must return soon: Run waits for it.
//
// A job that panics, or that ends its goroutine with runtime.Goexit, is a bug of this program and not of a guest: it ends the process,
// with the key in the message.
type Job[K comparable, M any] func(ctx context.Context, item scheduler.Item[K, M]) Outcome[M]

// Outcome is what is to happen to a key after its job. The zero value awaits the next request.
type Outcome[M any] struct {
	// Requeue asks for another run of the key, no sooner than After from the end of this one (rule 25). A request that is due sooner
	// absorbs it (rule 3). Zero or less is at once, behind what is ready.
	Requeue bool
	After   time.Duration
	// Msg and Priority are those of the requeue.
	Msg      M
	Priority scheduler.Priority
}

// Config says how a Runner runs. The zero value works.
type Config[M any] struct {
	// Concurrency is how many jobs run at once; zero is DefaultConcurrency, and MaxConcurrency is the most (rule 5).
	Concurrency int
	// DrainTimeout is how long running jobs may go on after a stop before they are interrupted (rule 9); zero is DefaultDrainTimeout.
	// To interrupt at once, close Input.Force.
	DrainTimeout time.Duration
	// Scheduler configures the scheduler: how messages merge.
	Scheduler scheduler.Config[M]
	// Logger gets what happens during a stop, and which jobs do not end; nil drops it.
	Logger *slog.Logger
}

// Validate returns an error that names the first field with a value that cannot be used.
func (c Config[M]) Validate() error {
	if c.Concurrency < 0 || c.Concurrency > MaxConcurrency {
		return fmt.Errorf("runner: concurrency %d: must be 1 to %d; 0 is the default of %d", c.Concurrency, MaxConcurrency, DefaultConcurrency)
	}
	if c.DrainTimeout < 0 {
		return fmt.Errorf("runner: drain timeout %v: must be positive; 0 is the default of %v", c.DrainTimeout, DefaultDrainTimeout)
	}
	return nil
}

// Input is what a Runner listens to. It never closes any of these channels.
type Input[K comparable, M any] struct {
	// Requests brings the requests in slices, so that one message can carry what one event maps to, or a whole first listing. A slice is
	// scheduled in one turn of the loop, at about a microsecond for each request, and is not kept; the sender must not change it after
	// sending. A sender has to give up when the context of Run ends: nobody receives then.
	//
	// Closing it says that no more requests will come: what is due is run, requeues and timers that are not due are dropped, Run returns.
	Requests <-chan []scheduler.Request[K, M]
	// Ready is closed when the first job may start (rule 10). Requests are taken and deduplicated before that. Nil is ready at once.
	Ready <-chan struct{}
	// Force is closed to stop without waiting: running jobs are interrupted at once, whether or not a stop has begun. Nil never forces.
	// For a command: the first signal ends the context of Run, the second closes Force, and a third finds nothing left to do. With
	// context.WithCancel and Force being its Done channel, cancelling again is harmless.
	Force <-chan struct{}
}

// Stats counts what a Runner has and did. Each figure was true at the end of a recent turn of the loop; they need not be of the same turn.
type Stats struct {
	Ready    int    // requests that are due and not started, those of running keys included
	Waiting  int    // requests that wait for their time
	Running  int    // jobs that run
	Started  uint64 // jobs started so far
	Received uint64 // requests received so far, duplicates included; requeues are not requests
}

// Runner runs one Job for the keys that it is asked to run. Make one with New.
type Runner[K comparable, M any] struct {
	cfg   Config[M]
	job   Job[K, M]
	begun atomic.Bool // Run has been called

	// Written by the loop, read by Stats.
	ready, waiting, running atomic.Int64
	started, received       atomic.Uint64
}

// New returns a Runner of a job. It starts nothing; the error is that of Config.Validate.
func New[K comparable, M any](cfg Config[M], job Job[K, M]) (*Runner[K, M], error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = DefaultConcurrency
	}
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = DefaultDrainTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Runner[K, M]{cfg: cfg, job: job}, nil
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
// The error is nil if all jobs ended by themselves. It wraps ErrDrainTimeout or ErrForced if some were interrupted.
func (r *Runner[K, M]) Run(ctx context.Context, in Input[K, M]) error {
	if r.begun.Swap(true) {
		return errors.New("runner: already run: a runner runs once, make another with New")
	}
	jobCtx, interrupt := context.WithCancelCause(context.WithoutCancel(ctx))
	defer interrupt(nil)
	l := newLoop(r, in, interrupt)
	defer l.timer.Stop()
	for {
		l.start(ctx, jobCtx)
		l.publish()
		if l.finished() {
			break
		}
		l.arm()
		l.wait(ctx)
	}
	l.jobs.Wait()
	return l.err
}

// Stats returns the present figures. It may be called at any time by any goroutine and takes no lock.
func (r *Runner[K, M]) Stats() Stats {
	return Stats{
		Ready:    int(r.ready.Load()),
		Waiting:  int(r.waiting.Load()),
		Running:  int(r.running.Load()),
		Started:  r.started.Load(),
		Received: r.received.Load(),
	}
}
