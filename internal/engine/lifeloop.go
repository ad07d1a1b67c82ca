// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/runner"
)

// judgeEvery is the interval at which revisions are judged. Failed runs also cause a
// judgment.
const judgeEvery = 250 * time.Millisecond

// loop is the state that the goroutine of Life.Run owns.
type loop struct {
	*Life
	core     *life.Core
	ctx      context.Context     // of the process
	open     map[uint64]*request // not answered yet
	ids      uint64              // the last ID of a request
	current  *Controller         // the loaded controller; nil if none is loaded
	ran      bool                // whether current was run
	run      context.Context     // of the run; nil unless it runs
	end      context.CancelFunc  // ends loading or the run
	cut      context.CancelFunc  // ends a preparation; nil without one
	prepared *rollout.Prepared   // until it is used or given up
	retry    *time.Timer
	wg       sync.WaitGroup
}

// result is the result of a goroutine that the loop started.
type result struct {
	life.Event

	controller *Controller
	prepared   *rollout.Prepared
}

// Run is the life of a controller. If loaded is not nil, that controller is run instead of
// loading one. Run begins when begin is closed, and ends when ctx ends or Stop is called.
// It returns when everything that it started has ended. Closing force interrupts running
// reconciles.
func (l *Life) Run(ctx context.Context, begin, force <-chan struct{}, loaded *Controller) error {
	defer close(l.ended)
	o := &loop{Life: l, core: life.NewCore(time.Now()), ctx: ctx, open: map[uint64]*request{}, retry: time.NewTimer(0)}
	if !o.retry.Stop() {
		<-o.retry.C
	}
	defer o.wg.Wait()
	if loaded != nil {
		o.current = loaded
		o.step(loaded.tried())
	}
	o.serve(begin, force)
	return l.View().Err
}

func (l *loop) serve(begin, force <-chan struct{}) {
	tick, judging := time.NewTicker(judgeEvery), true
	defer tick.Stop()
	versions := time.NewTicker(versionsEvery)
	defer versions.Stop()
	for l.core.Phase != life.Stopped {
		if on := l.core.Judging(); on != judging { // an idle controller takes no CPU
			if judging = on; on {
				tick.Reset(judgeEvery)
			} else {
				tick.Stop()
			}
		}
		requests, late, wake := l.requests, (<-chan rollout.Late)(nil), (<-chan struct{})(nil)
		if c := l.current; c != nil && c.rollout != nil && l.run != nil {
			late, wake = c.rollout.Late(), c.rollout.Wake()
		}
		stop, done := l.stop, l.ctx.Done()
		if l.core.Phase == life.Stopping {
			stop, done = nil, nil
		}
		if l.core.Phase == life.Cutting || l.core.Phase == life.Loaded { // requests wait
			requests, late = nil, nil
		}
		select {
		case <-stop:
			l.step(life.Event{Kind: life.Stop})
		case <-done:
			l.step(life.Event{Kind: life.Stop})
		case r := <-l.results:
			l.took(&r)
		case <-force:
			force = nil
			l.interrupt()
		case <-begin:
			begin = nil
			l.step(life.Event{Kind: life.Begin})
		case r := <-requests:
			l.accept(r)
		case <-l.restart:
			l.step(life.Event{Kind: life.Restart})
		case k := <-late:
			l.accept(lateWatch(k))
		case <-l.retry.C:
			l.step(life.Event{Kind: life.Retry})
		case <-wake:
			l.step(life.Event{Kind: life.Tick})
		case <-tick.C:
			l.step(life.Event{Kind: life.Tick})
		case <-versions.C:
			l.checkVersions()
		}
	}
}

// lateWatch returns the task of watching a kind that has become available in the API
// server.
func lateWatch(k rollout.Late) *request {
	return &request{Event: life.Event{Kind: life.Task}, answered: make(chan answer, 1), do: func(_ context.Context, c *Controller) (misfit, err error) {
		c.rollout.Watch(k)
		return nil, nil
	}}
}

// took handles a result. A pending stop is handled first, because it is then the cause of
// any error in the result.
func (l *loop) took(r *result) {
	select {
	case <-l.stop:
		l.step(life.Event{Kind: life.Stop})
	case <-l.ctx.Done():
		l.step(life.Event{Kind: life.Stop})
	default:
	}
	switch r.Kind {
	case life.Tried:
		l.current = r.controller
		l.end()
	case life.Prepared:
		l.cut()
		l.cut, l.prepared = nil, r.prepared
	case life.Ended:
		l.end()
		if l.cut != nil { // the preparation is the last goroutine that still runs
			l.cut()
			next := <-l.results
			l.took(&next)
		}
		l.run = nil
	default:
	}
	l.step(r.Event)
}

// step passes an event to the core, and carries out the effects and the events that follow.
func (l *loop) step(ev life.Event) {
	for events := []life.Event{ev}; len(events) > 0; {
		ev, events = events[0], events[1:]
		ev.Now = time.Now()
		before := l.core.Message
		effects := l.core.Step(ev)
		l.publish(&ev, before)
		for i := range effects {
			events = append(events, l.carryOut(&effects[i])...)
		}
		if len(events) == 0 && l.core.Due() {
			events = append(events, life.Event{Kind: life.Resume})
		}
	}
}

// publish stores the View, and logs why loading or a run failed.
func (l *loop) publish(ev *life.Event, before string) {
	v := View{Phase: admin.PhaseLoading, Message: l.core.Message, Since: l.core.Since}
	old := l.View()
	v.First, v.Last, v.Err = old.First, old.Last, old.Err
	first := false
	switch ev.Kind {
	case life.Tried:
		v.Last = ev.Err
		if first = old.First == nil && !isClosed(l.first); first && l.core.Phase != life.Stopping && l.core.Phase != life.Stopped {
			v.First = ev.Err
		}
		if l.core.Phase == life.Failed && before != l.core.Message {
			l.log.Error("controller failed to start; retrying", "controller", l.source.Name(), "error", humanize.OneLine(l.core.Message))
		}
	case life.Ended:
		if v.Err = classed(ev.Err); v.Err != nil && l.core.Phase == life.Restarting {
			l.log.Warn("controller did not stop cleanly", "controller", l.source.Name(), "error", v.Err.Error())
			v.Err = nil
		}
	default:
	}
	switch phase := l.core.Phase; {
	case phase == life.Waiting:
		v.Phase = admin.PhaseWaiting
	case (phase == life.Loading || phase == life.Restarting) && v.Message != "" && v.Message != before:
		l.log.Warn("the live module does not start again; starting the next one at once", "controller", l.source.Name(), "reason", humanize.OneLine(v.Message))
	case phase == life.Failed:
		v.Phase = admin.PhaseFailed
		l.retry.Reset(time.Until(l.core.Retry))
	case phase.Runs() || phase == life.Loaded || l.run != nil:
		v.Phase, v.Engine, v.Restarting = admin.PhaseRunning, l.current, phase == life.Restarting
	}
	if v.Phase == old.Phase && v.Message == old.Message {
		v.Since = old.Since
	}
	l.view.Store(&v)
	if first {
		close(l.first)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// classed assigns an exit class to an error of a run.
func classed(err error) error {
	if errors.Is(err, runner.ErrForced) || errors.Is(err, runner.ErrDrainTimeout) {
		return failure.Forced.Wrap(err)
	}
	return err
}

// tried returns the event of a controller that has been loaded.
func (c *Controller) tried() life.Event {
	ev := life.Event{Kind: life.Tried, Outcome: life.OK, Number: 1, Failed: c.failed}
	if c.Module != nil {
		ev.Number, ev.Digest, ev.Canary = c.Module.Revision(), c.Module.Digest(), canaryText(&c.rollout.Options.Canary)
	}
	return ev
}
