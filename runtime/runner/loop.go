package runner

import (
	"context"
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

// maxAlong is how many messages a turn takes in at most beyond the one that it woke up for, so that a flood holds up neither a stop nor the
// start of jobs.
const maxAlong = 32

// loop is one Run. All fields belong to the goroutine of Run.
type loop[K comparable, M any] struct {
	r         *Runner[K, M]
	sched     *scheduler.Scheduler[K, M]
	workers   workers[K, M]
	state     state
	open      bool // Input.Ready has been closed
	in        Input[K, M]
	interrupt context.CancelCauseFunc
	err       error // of Run

	runningSince int64 // when the jobs that run were started, in microseconds after figures.base, added up

	client *client // of Config.Pool; nil without
	asking bool    // the pool has refused slots since the last retract, and may still grant them

	timer *time.Timer // the one timer: for the next request that is due or, in a stop, for stopAt
	armed time.Time   // when timer fires; zero if it does not
	// stopAt is when running jobs are interrupted (draining), or complained of again (interrupted).
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

// start starts jobs until nothing is ready or all slots are taken. It advances the scheduler on every turn, also when it can start
// nothing: a timer in the past would otherwise make the loop spin.
func (l *loop[K, M]) start(ctx, jobCtx context.Context) {
	now := time.Now()
	l.sched.Advance(now)
	for l.mayStart() {
		// A stop may have come together with what woke the loop up, and must win.
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

// mayStart says whether there is something to start and nothing but the pool against it.
func (l *loop[K, M]) mayStart() bool {
	return l.open && l.state <= finishing && l.sched.Running() < l.r.cfg.Concurrency && l.sched.Startable() > 0 && !l.r.paused.Load()
}

// wait sleeps until something happens, and takes it in, together with what else is there.
func (l *loop[K, M]) wait(ctx context.Context) {
	stop := ctx.Done()
	if l.state > finishing {
		stop = nil // it has been seen
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

// takeAlong receives waiting messages, up to a bound: a turn for each would cost more than taking it in. A select of one channel takes no
// lock where there is nothing, so each has its own.
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

// finish frees the key and the slot of a job that has ended, and schedules its requeue.
func (l *loop[K, M]) finish(s *slot[K, M]) {
	key, out, ended := s.item.Key, s.outcome, s.ended
	l.r.cfg.OnEnd(ended.Sub(s.started))
	l.runningSince -= s.started.Sub(l.r.base).Microseconds()
	l.workers.finish(s)
	if out.Delay > 0 {
		l.sched.Delay(time.Now(), key, ended.Add(out.Delay))
	}
	l.sched.Done(key)
	if out.Requeue {
		l.requeue(key, out, ended)
	}
	l.releaseSlot()
}

// requeue schedules the requeue that a job has asked for.
func (l *loop[K, M]) requeue(key K, out Outcome[M], ended time.Time) {
	l.r.requeued.Add(1)
	if l.state != working {
		return
	}
	l.sched.Schedule(time.Now(), scheduler.Request[K, M]{
		Key:      key,
		Msg:      out.Msg,
		At:       ended.Add(out.After), // rule 25: not from when the loop came to read it
		Priority: out.Priority,
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

// join makes the loop a client of its pool, if it has one.
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

// takeSlot takes a slot of the pool. If there is none now, the loop is woken once it has one.
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

// releaseSlot gives the slot of a job that has ended back to the pool.
func (l *loop[K, M]) releaseSlot() {
	if l.client != nil {
		l.r.cfg.Pool.release(l.client)
	}
}
