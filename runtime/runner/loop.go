// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// state is the phase of a loop. It only moves forward.
type state uint8

const (
	working     state = iota // starts jobs, until ctx ends, Force is closed or Requests is closed
	finishing                // no more requests will come: starts jobs for due requests, and ends with the last of them
	draining                 // starts nothing; waits until the running jobs end or the drain timeout passes
	interrupted              // the running jobs are canceled; waits until they end
)

// maxAlong limits the additional messages that one turn receives after the one that woke the loop, so that a flood delays neither a stop
// nor the start of jobs.
const maxAlong = 32

// loop is one call of Run. All fields belong to the goroutine of Run.
type loop[K comparable, M any] struct {
	r         *Runner[K, M]
	sched     *scheduler.Scheduler[K, M]
	workers   workers[K, M]
	state     state
	open      bool // Input.Ready has been closed
	in        Input[K, M]
	interrupt context.CancelCauseFunc
	err       error // the result of Run

	runningSince int64 // sum of the start times of the running jobs, in microseconds after figures.base

	client *client // of Config.Pool; nil if there is none
	asking bool    // the pool has refused a slot since the last retract, and may still grant one

	timer *time.Timer // the only timer: for the next due request or, in a stop, for stopAt
	armed time.Time   // when timer fires; zero if it is stopped
	// stopAt is when running jobs are interrupted (draining), or reported again (interrupted).
	stopAt time.Time
}

func newLoop[K comparable, M any](r *Runner[K, M], in Input[K, M], interrupt context.CancelCauseFunc) *loop[K, M] {
	l := &loop[K, M]{
		r:         r,
		sched:     scheduler.New[K, M](r.cfg.Scheduler),
		workers:   newWorkers(r.cfg.Concurrency, r.call),
		open:      in.Ready == nil,
		in:        in,
		interrupt: interrupt,
		timer:     time.NewTimer(time.Hour),
	}
	l.timer.Stop()
	return l
}

// start starts jobs until nothing is ready or all slots are taken. It always advances the scheduler, even if it cannot start anything: a
// timer in the past would make the loop spin.
func (l *loop[K, M]) start(ctx, jobCtx context.Context) {
	now := time.Now()
	l.sched.Advance(now)
	for l.mayStart() {
		// A stop may have arrived together with the event that woke the loop, and takes precedence.
		if l.checkStop(ctx); l.state > finishing {
			break
		}
		if !l.takeSlot() {
			return
		}
		item, _ := l.sched.Pop(now)
		l.r.started.Add(1)
		l.r.cfg.OnStart(now.Sub(item.ReadyAt), item.Priority)
		l.runningSince += now.Sub(l.r.base).Microseconds()
		l.workers.start(jobCtx, item, now)
	}
	l.retract()
}

// mayStart reports whether a job is ready and only the pool could prevent its start.
func (l *loop[K, M]) mayStart() bool {
	return l.open && l.state <= finishing && l.sched.Running() < l.r.cfg.Concurrency && l.sched.Startable() > 0 && !l.r.paused.Load()
}

// wait blocks until something happens and handles it, together with other messages that are ready.
func (l *loop[K, M]) wait(ctx context.Context) {
	stop := ctx.Done()
	if l.state > finishing {
		stop = nil // it has been handled
	}
	select {
	case batch, ok := <-l.in.Requests:
		l.accept(batch, ok)
	case s := <-l.workers.done:
		l.finish(s)
	case <-l.timer.C:
		l.armed = time.Time{}
		l.alarm()
	case note := <-l.r.notes:
		if note != nil {
			note(l)
		}
	case <-l.in.Ready:
		l.open, l.in.Ready = true, nil
	case <-stop:
		l.drain()
	case <-l.in.Force:
		l.force()
	}
	l.takeAlong()
}

// takeAlong receives messages that are ready, up to a bound, because a turn of the loop costs more than handling one. Each channel has its
// own select: a select of a single empty channel takes no lock.
func (l *loop[K, M]) takeAlong() {
	for range maxAlong / 2 {
		some := false
		select {
		case s := <-l.workers.done:
			l.finish(s)
			some = true
		default:
		}
		select {
		case batch, ok := <-l.in.Requests:
			l.accept(batch, ok)
			some = true
		default:
		}
		if !some {
			return
		}
	}
}

// accept schedules a batch of requests; ok is false if the channel is closed.
func (l *loop[K, M]) accept(batch []scheduler.Request[K, M], ok bool) {
	if !ok {
		l.state, l.in.Requests = finishing, nil
		return
	}
	l.r.received.Add(uint64(len(batch)))
	now := time.Now()
	for _, req := range batch {
		l.sched.Schedule(now, req)
	}
}

// finish frees the key and the slot of a job that has ended, and schedules its requeue.
func (l *loop[K, M]) finish(s *slot[K, M]) {
	key, next, ended := s.item.Key, s.next, s.ended
	l.r.cfg.OnEnd(ended.Sub(s.started))
	l.runningSince -= s.started.Sub(l.r.base).Microseconds()
	l.workers.finish(s)
	if next.Requeue {
		l.r.requeued.Add(1)
		next.Requeue = l.state == working
	}
	l.sched.Finish(time.Now(), key, ended, next) // rule 25: not from when the loop came to read it
	l.releaseSlot()
}

// finished reports whether no job is running and none will be started.
func (l *loop[K, M]) finished() bool {
	if l.sched.Running() > 0 || l.state == working {
		return false
	}
	return l.state != finishing || l.sched.Len() == 0
}

// arm sets the timer to the next time at which the loop must act without an event.
func (l *loop[K, M]) arm() {
	at := l.stopAt
	if l.state <= finishing {
		at, _ = l.sched.NextAt()
	}
	switch {
	case at.Equal(l.armed):
		return
	case at.IsZero():
		l.timer.Stop()
	default:
		l.timer.Reset(time.Until(at))
	}
	l.armed = at
}

// join makes the loop a client of its pool, if there is one.
func (l *loop[K, M]) join() (err error) {
	if pool := l.r.cfg.Pool; pool != nil {
		l.client, err = pool.join(l.r.wake)
	}
	return err
}

func (l *loop[K, M]) leave() {
	if l.client != nil {
		l.r.cfg.Pool.leave(l.client)
	}
}

// takeSlot takes a slot from the pool. If none is free, the pool wakes the loop when it grants one.
func (l *loop[K, M]) takeSlot() bool {
	if l.client == nil {
		return true
	}
	wants := min(l.sched.Startable(), l.r.cfg.Concurrency-l.sched.Running())
	if l.r.cfg.Pool.take(l.client, wants) {
		return true
	}
	l.asking = true
	return false
}

// retract withdraws the request for slots.
func (l *loop[K, M]) retract() {
	if l.asking {
		l.r.cfg.Pool.retract(l.client)
		l.asking = false
	}
}

// releaseSlot returns the slot of an ended job to the pool.
func (l *loop[K, M]) releaseSlot() {
	if l.client != nil {
		l.r.cfg.Pool.release(l.client)
	}
}
