// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// carryOut carries out an effect, and returns the events that follow from it immediately.
func (l *loop) carryOut(e *life.Effect) []life.Event {
	switch e.Kind {
	case life.Load:
		l.load(e.Digest)
	case life.Cut:
		if l.cut != nil {
			l.cut()
		} else {
			l.end()
		}
	case life.Run:
		l.begin()
	case life.Drain:
		l.end()
	case life.Close:
		l.close()
	case life.Reply:
		l.reply(e)
	default:
		return l.change(e)
	}
	return nil
}

// change carries out an effect on the revisions of the running controller.
func (l *loop) change(e *life.Effect) []life.Event {
	c := l.current
	r := c.rollout
	switch e.Kind {
	case life.Configure:
		return l.configure(e.ID)
	case life.Do:
		return l.do(e.ID)
	case life.Prepare:
		return l.prepare(e)
	case life.Discard:
		r.Discard(l.take())
	case life.Canary:
		canary := &r.Options.Canary
		if asked := l.open[e.ID]; asked != nil {
			canary = asked.canary
		}
		r.StartCanary(l.run, l.take(), *canary, e.Change.Why)
	case life.EndCanary:
		r.EndCanary(l.run, e.Result, e.Reason)
	case life.Activate:
		onTrial, err := r.Activate(l.run, l.take(), &e.Change)
		return []life.Event{{Kind: life.Promoted, Outcome: outcome(l.run, err), Err: err, Number: c.Module.Revision(), Digest: c.Module.Digest(), OnTrial: onTrial}}
	case life.Judge:
		canary, live := r.Judge(l.run, l.core.Phase == life.Running)
		return []life.Event{{Kind: life.Judged, Canaries: canary, Lives: live}}
	case life.Recall:
		if e.Change.Kind == life.Lead {
			ev := r.Lead(l.run)
			ev.ID = e.ID
			return []life.Event{ev}
		}
		canary, live := r.Follow(l.run)
		return []life.Event{{Kind: life.Recalled, ID: e.ID, Canaries: canary, Lives: live}}
	case life.Prove:
		r.Prove(l.run, e.Digest)
		c.proven(e.Digest)
	case life.Fail:
		r.Fail(e.Number, e.Reason)
	case life.Bury:
		r.Bury(l.run, e.Number, e.Digest, e.Reason)
	case life.Stay:
		r.Stay(l.run, e.Number, e.Digest, e.Reason, e.Err)
	default: // life.Report
		if e.Err != nil {
			r.Refuse(e.Digest, e.Err)
		}
		c.report(e.Result, e.Number, e.Reason)
		l.source.Changed(&admin.Change{Time: time.Now(), Revision: e.Number, Digest: e.Digest, Result: string(e.Result), Why: e.Reason})
	}
	return nil
}

// take returns the prepared revision and clears it: the caller uses it or gives it up.
func (l *loop) take() *rollout.Prepared {
	up := l.prepared
	l.prepared = nil
	return up
}

// send passes a result to the loop.
func (l *loop) send(r result) { l.results <- r }

func (l *loop) load(digest string) {
	ctx, end := context.WithCancel(l.ctx)
	l.end = end
	l.wg.Go(func() {
		a := l.source.Load(ctx, digest, func(why string) { l.send(result{Event: life.Event{Kind: life.Waits, Why: why}}) })
		ev := life.Event{Kind: life.Tried, Outcome: life.Error, Err: a.Err, Digest: a.Digest}
		switch {
		case a.Err == nil:
			ev = a.Controller.tried()
		case a.LastLive != "":
			l.log.Warn("running the module that was live last", "reason", a.Err.Error())
			ev.Outcome, ev.Digest = life.Bad, a.LastLive
		}
		l.send(result{Event: ev, controller: a.Controller})
	})
}

// begin starts the run of the controller.
func (l *loop) begin() {
	c := l.current
	l.ran = true
	l.run, l.end = context.WithCancel(l.ctx)
	ctx := l.run
	if c.rollout != nil {
		c.rollout.AwaitPending(ctx)
		l.source.Changed(&admin.Change{Time: time.Now(), Revision: c.Module.Revision(), Digest: c.Module.Digest(), Result: admin.ChangeStarted})
	}
	l.wg.Go(func() {
		led := make(chan struct{})
		go func() { // awaited below
			defer close(led)
			c.takeOver(ctx, l.Life)
		}()
		err := c.Run(ctx, l.force)
		<-led
		l.send(result{Event: life.Event{Kind: life.Ended, Err: err}})
	})
}

// close releases what was loaded.
func (l *loop) close() {
	c, ran := l.current, l.ran
	l.current, l.ran = nil, false
	l.wg.Go(func() {
		if !ran {
			c.Release()
		}
		if err := c.Close(); err != nil {
			l.log.Error("cannot close the module", "controller", c.Name(), "error", err.Error())
		}
		l.send(result{Event: life.Event{Kind: life.Closed}})
	})
}

// prepare prepares a revision, in a goroutine unless the change is urgent.
func (l *loop) prepare(e *life.Effect) []life.Event {
	ctx, cut := context.WithCancel(l.run)
	p := preparation{run: l.run, rollout: l.current.rollout, change: e.Change, module: Bytes(nil)}
	switch r := l.open[e.ID]; {
	case r != nil && r.module != nil:
		p.module = r.module
	case e.Change.Kind == life.Swap: // its request was answered before a restart
		p.module = stored{l.source, e.Change.Digest}
	}
	if e.Change.Urgent() {
		defer cut()
		r := p.make(ctx)
		l.prepared = r.prepared
		return []life.Event{r.Event}
	}
	l.cut = cut
	l.wg.Go(func() { l.send(p.make(ctx)) })
	return nil
}

// preparation is the input of preparing a revision.
type preparation struct {
	run     context.Context
	rollout *rollout.Rollout
	change  life.Change
	module  Borrower // its bytes are empty for an earlier revision
}

func (p *preparation) make(ctx context.Context) result {
	var up *rollout.Prepared
	wasm, done, err := p.module.Borrow(ctx)
	if err == nil {
		defer done()
	}
	switch {
	case err != nil:
	case p.change.Kind == life.Shadow:
		up, err = p.rollout.PrepareShadow(ctx, wasm)
	default:
		up, err = p.rollout.Prepare(ctx, wasm, p.change.To)
	}
	r := result{Event: life.Event{Kind: life.Prepared, Outcome: outcome(p.run, err), Err: err}}
	if err == nil {
		r.prepared, r.Number, r.Digest = up, up.Number(), up.Digest()
	}
	return r
}

// outcome classifies the error of a preparation or a promotion.
func outcome(run context.Context, err error) life.Outcome {
	switch {
	case err == nil:
		return life.OK
	case run.Err() != nil:
		return life.Ending
	case errors.Is(err, host.ErrSameModule):
		return life.Same
	case errors.Is(err, host.ErrNotKept):
		return life.NotKept
	default:
		return life.Error
	}
}
