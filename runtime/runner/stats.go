package runner

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// ErrNotRunning is the error of calls that need the loop of a Runner, before Run or after it.
var ErrNotRunning = errors.New("runner: not running")

// Stats counts what a Runner has and did. Each figure was true at the end of a recent turn of the loop; they need not be of the same turn.
type Stats struct {
	Ready    int    // requests that are due and not started, those of running keys included
	ReadyLow int    // of these, requests of low priority whose key is free
	Waiting  int    // requests that wait for their time
	Running  int    // jobs that run
	Started  uint64 // jobs started so far
	Received uint64 // requests received so far, duplicates included; requeues are not requests
	Requeued uint64 // requeues that jobs have asked for so far; a retry after an error is one

	// OldestReady is how long the request has been due that is next in its class, and OldestRunning how long the job has been running that
	// has been running longest; zero if there is none.
	OldestReady, OldestRunning time.Duration
	// Unfinished is how long the jobs that run have been running, added up.
	Unfinished time.Duration
}

// figures is Stats as the loop keeps it for others.
type figures struct {
	base time.Time // the instant that the ages are counted from

	// Written by the loop, read by Stats.
	ready, readyLow, waiting, running atomic.Int64
	started, received, requeued       atomic.Uint64
	oldestReady, oldestRunning        atomic.Int64 // since when, in nanoseconds after base; none if there is none
	runningSince                      atomic.Int64 // the starts of the jobs that run, in microseconds after base, added up
}

// none is the age of what is not there.
const none = -1 << 63

// Stats returns the present figures. It may be called at any time by any goroutine and takes no lock.
func (f *figures) Stats() Stats {
	now, running := time.Since(f.base), f.running.Load()
	oldest := age(now, f.oldestRunning.Load())
	return Stats{
		Ready:         int(f.ready.Load()),
		ReadyLow:      int(f.readyLow.Load()),
		Waiting:       int(f.waiting.Load()),
		Running:       int(running),
		Started:       f.started.Load(),
		Received:      f.received.Load(),
		Requeued:      f.requeued.Load(),
		OldestReady:   age(now, f.oldestReady.Load()),
		OldestRunning: oldest,
		Unfinished:    f.unfinished(now, time.Duration(running), oldest),
	}
}

// unfinished returns the ages of the jobs that run, added up. The figures may be of different turns, so the sum is kept to what it can be.
func (f *figures) unfinished(now, running, oldest time.Duration) time.Duration {
	return min(max(0, running*now-time.Duration(f.runningSince.Load())*time.Microsecond), running*oldest)
}

func age(now time.Duration, since int64) time.Duration {
	if since == none {
		return 0
	}
	return max(0, now-time.Duration(since))
}

// publish shows the figures of this turn to Stats.
func (l *loop[K, M]) publish() {
	f := &l.r.figures
	f.ready.Store(int64(l.sched.Len()))
	f.readyLow.Store(int64(l.sched.StartableOf(scheduler.Low)))
	f.waiting.Store(int64(l.sched.Waiting()))
	f.running.Store(int64(l.sched.Running()))
	f.oldestReady.Store(f.since(l.sched.OldestReady()))
	f.oldestRunning.Store(f.since(l.sched.OldestRunning()))
	f.runningSince.Store(l.runningSince)
}

func (f *figures) since(t time.Time, ok bool) int64 {
	if !ok {
		return none
	}
	return int64(t.Sub(f.base))
}

// Lookup returns what is known of a key: whether it runs, what is pending for it, and what that waits for. The zero View says that nothing
// is. It asks the loop, which answers within one turn; the error is ErrNotRunning, or that of ctx.
func (r *Runner[K, M]) Lookup(ctx context.Context, key K) (scheduler.View[M], error) {
	return ask(ctx, r, func(l *loop[K, M]) scheduler.View[M] { return l.sched.Lookup(key) })
}

// Pending returns the keys that something is pending for, in no order. The error is that of Lookup.
func (r *Runner[K, M]) Pending(ctx context.Context) ([]K, error) {
	return ask(ctx, r, func(l *loop[K, M]) []K { return slices.Collect(l.sched.Pending()) })
}

// ask calls a function in the loop and returns what it returns.
func ask[T any, K comparable, M any](ctx context.Context, r *Runner[K, M], f func(*loop[K, M]) T) (T, error) {
	var zero T
	if !r.runCalled.Load() {
		return zero, ErrNotRunning
	}
	answer := make(chan T, 1)
	select {
	case r.notes <- func(l *loop[K, M]) { answer <- f(l) }:
	case <-r.ended:
		return zero, ErrNotRunning
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}
	select {
	case got := <-answer:
		return got, nil
	case <-r.ended:
		return zero, ErrNotRunning
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}
}
