package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// state is how far a loop has come. It only moves forward.
type state uint8

const (
	working     state = iota // starts jobs; until ctx ends, force or the end of all work
	finishing                // no more requests will come: starts jobs for what is due, and ends with the last of them
	draining                 // starts nothing; until the running jobs end, or their time is up
	interrupted              // the running jobs are cancelled; until they end
)

// result is the message of a job that has ended.
type result[K comparable, M any] struct {
	key     K
	outcome Outcome[M]
	ended   time.Time
}

// loop is one Run. All fields belong to the goroutine of Run; jobs only know done and jobs.
type loop[K comparable, M any] struct {
	r         *Runner[K, M]
	sched     *scheduler.Scheduler[K, M]
	state     state
	open      bool // Input.Ready has been closed
	in        Input[K, M]
	done      chan result[K, M] // has room for every running job, so that no job waits for the loop
	jobs      sync.WaitGroup    // the goroutines of jobs
	interrupt context.CancelCauseFunc
	err       error // of Run

	timer *time.Timer // the one timer: for the next request that is due or, in a stop, for stopAt
	armed time.Time   // when timer fires; zero if it does not
	// stopAt is when running jobs are interrupted (draining), or complained of again (interrupted).
	stopAt time.Time
}

func newLoop[K comparable, M any](r *Runner[K, M], in Input[K, M], interrupt context.CancelCauseFunc) *loop[K, M] {
	l := &loop[K, M]{
		r:         r,
		sched:     scheduler.New[K, M](r.cfg.Scheduler),
		open:      in.Ready == nil,
		in:        in,
		done:      make(chan result[K, M], r.cfg.Concurrency),
		interrupt: interrupt,
		timer:     time.NewTimer(time.Hour),
	}
	l.timer.Stop()
	return l
}

// start starts jobs until nothing is ready or all slots are taken. It advances the scheduler on every turn, also when it can start
// nothing: a timer in the past would otherwise make the loop spin.
func (l *loop[K, M]) start(ctx, jobCtx context.Context) {
	now := time.Now()
	l.sched.Advance(now)
	for l.open && l.state <= finishing && l.sched.Running() < l.r.cfg.Concurrency {
		// A stop may have come together with what woke the loop up, and must win.
		if l.checkStop(ctx); l.state > finishing {
			return
		}
		item, ok := l.sched.Pop(now)
		if !ok {
			return
		}
		l.r.started.Add(1)
		l.jobs.Go(func() { l.run(jobCtx, item) })
	}
}

// run is the goroutine of one job.
func (l *loop[K, M]) run(ctx context.Context, item scheduler.Item[K, M]) {
	outcome := l.r.call(ctx, item)
	l.done <- result[K, M]{key: item.Key, outcome: outcome, ended: time.Now()}
}

// call calls the job. If the job does not return, it panics with the key in the message; the stack below it is still that of the job.
func (r *Runner[K, M]) call(ctx context.Context, item scheduler.Item[K, M]) Outcome[M] {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			panic(fmt.Sprintf("BUG: runner: job[%v]: panic: %v", item.Key, v))
		}
		panic(fmt.Sprintf("BUG: runner: job[%v]: called runtime.Goexit", item.Key))
	}()
	outcome := r.job(ctx, item)
	returned = true
	return outcome
}

// wait sleeps until something happens, and takes it in.
func (l *loop[K, M]) wait(ctx context.Context) {
	stop := ctx.Done()
	if l.state > finishing {
		stop = nil // it has been seen
	}
	select {
	case batch, ok := <-l.in.Requests:
		l.accept(batch, ok)
	case res := <-l.done:
		l.finish(res)
	case <-l.timer.C:
		l.armed = time.Time{}
		l.alarm()
	case <-l.in.Ready:
		l.open, l.in.Ready = true, nil
	case <-stop:
		l.drain()
	case <-l.in.Force:
		l.force()
	}
}

// accept takes a batch of requests in; ok is false if the channel is closed.
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

// finish frees the key of a job that has ended and schedules its requeue.
func (l *loop[K, M]) finish(res result[K, M]) {
	l.sched.Done(res.key)
	if !res.outcome.Requeue || l.state != working {
		return
	}
	l.sched.Schedule(time.Now(), scheduler.Request[K, M]{
		Key:      res.key,
		Msg:      res.outcome.Msg,
		At:       res.ended.Add(res.outcome.After), // rule 25: not from when the loop came to read it
		Priority: res.outcome.Priority,
	})
}

// finished says whether nothing runs and nothing will.
func (l *loop[K, M]) finished() bool {
	if l.sched.Running() > 0 || l.state == working {
		return false
	}
	return l.state != finishing || l.sched.Len() == 0
}

// arm sets the timer to the next time at which something is to be done without anyone asking.
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

// publish shows the figures of this turn to Stats.
func (l *loop[K, M]) publish() {
	l.r.ready.Store(int64(l.sched.Len()))
	l.r.waiting.Store(int64(l.sched.Waiting()))
	l.r.running.Store(int64(l.sched.Running()))
}
