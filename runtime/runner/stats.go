// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// ErrNotRunning is returned by calls that need the loop of a Runner, before Run and after it.
var ErrNotRunning = errors.New("runner: not running")

// Stats is a snapshot of a Runner. Each figure was true at the end of a recent turn of the loop, but not necessarily of the same turn.
type Stats struct {
	Ready    int    // requests that are due and not started, including those of running keys
	ReadyLow int    // the part of Ready with low priority whose key is not running
	Waiting  int    // requests that are not due yet
	Running  int    // running jobs
	Started  uint64 // jobs started so far
	Received uint64 // requests received so far, including duplicates; requeues are not requests
	Requeued uint64 // requeues that jobs have requested so far, including retries after errors

	// OldestReady is how long the next request of its class has been due, and OldestRunning how long the longest-running job has been
	// running. Both are zero if there is none.
	OldestReady, OldestRunning time.Duration
	// Unfinished is the sum of the run times so far of all running jobs.
	Unfinished time.Duration
}

// figures are the values behind Stats that the loop publishes.
type figures struct {
	base time.Time // the start of the time axis

	// Written by the loop, read by Stats.
	ready, readyLow, waiting, running atomic.Int64
	started, received, requeued       atomic.Uint64
	oldestReady, oldestRunning        atomic.Int64 // the start time in nanoseconds after base; none if there is none
	runningSince                      atomic.Int64 // sum of the start times of the running jobs, in microseconds after base
}

// none marks a missing start time.
const none = -1 << 63

// Stats returns the current figures. It is safe for concurrent use, takes no lock, and may be called at any time.
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

// unfinished returns the sum of the ages of the running jobs. The figures may be from different turns, so the sum is clamped to a possible
// value.
func (f *figures) unfinished(now, running, oldest time.Duration) time.Duration {
	return min(max(0, running*now-time.Duration(f.runningSince.Load())*time.Microsecond), running*oldest)
}

func age(now time.Duration, since int64) time.Duration {
	if since == none {
		return 0
	}
	return max(0, now-time.Duration(since))
}

// publish updates the figures that Stats returns.
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

// Lookup returns the state of a key: whether it runs, what is pending for it, and what that waits for. The zero View means that the key is
// unknown. The loop answers within one turn; the error is ErrNotRunning, or the cause of ctx.
func (r *Runner[K, M]) Lookup(ctx context.Context, key K) (scheduler.View[M], error) {
	return ask(ctx, r, func(l *loop[K, M]) scheduler.View[M] { return l.sched.Lookup(key) })
}

// Pending returns the keys with a pending request that matches, in no order, and the keys that are running at that time. matches is called by
// the loop, and must be quick. The errors are those of Lookup.
func (r *Runner[K, M]) Pending(ctx context.Context, matches func(scheduler.View[M]) bool) (pending, running []K, err error) {
	pending, err = ask(ctx, r, func(l *loop[K, M]) (keys []K) {
		for key := range l.sched.Pending() {
			if matches(l.sched.Lookup(key)) {
				keys = append(keys, key)
			}
		}
		running = slices.Collect(l.sched.RunningKeys())
		return keys
	})
	return pending, running, err
}

// Forget removes the pending requests of keys. The errors are those of Lookup.
func (r *Runner[K, M]) Forget(ctx context.Context, keys []K) error {
	_, err := ask(ctx, r, func(l *loop[K, M]) struct{} {
		for _, key := range keys {
			l.sched.Forget(key)
		}
		return struct{}{}
	})
	return err
}

// ask calls a function in the loop and returns its result.
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
