// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/runtime/leader"
)

// loop runs the core of a Member: it passes in what was read and which effects have ended, and carries out new effects. The fields below
// belong to its goroutine, except where they are channels.
type loop struct {
	*Member

	running context.Context // ends with Run
	ctx     context.Context // of the effects; ends when the lease is lost
	cancel  context.CancelFunc
	wg      sync.WaitGroup // the effects
	others  sync.WaitGroup // the watch, and the end of runs after the loss of the lease
	results chan func(*Core)
	all     *watched
	leases  *leases
	core    *Core
	load    load
	lists   chan struct{} // has one element for each slot that is being listed
	alarm   alarm
	ended   uint64            // the number of leases of silent replicas that were ended
	rejoins int               // how often this replica has taken part again
	failed  map[string]string // the last logged error of each operation
}

func (l *loop) run(ctx context.Context) error {
	l.failed = map[string]string{}
	select {
	case <-l.all.synced:
	case <-ctx.Done():
		return nil // nothing was written
	}
	l.leases = l.newLeases(l.cfg.ID)
	l.core = NewCore(l.leases.id, l.cfg.Slots, l.cfg.Timing, time.Now())
	l.saw()
	timer := time.NewTimer(0)
	defer timer.Stop()
	end := ctx.Done()
	for {
		again := l.step()
		switch {
		case l.core.Lost() && !l.rejoin():
			return fmt.Errorf("shards[%s/%s]: %w", l.cfg.Namespace, l.cfg.Group, leader.ErrLost)
		case l.core.Left() || end == nil && !l.core.MayWrite(time.Now()): // others take over when the lease is over
			return l.leave()
		}
		timer.Reset(time.Until(again))
		select {
		case <-timer.C:
		case <-l.all.changed:
			l.saw()
		case <-l.gate.Done():
			return fmt.Errorf("shards[%s/%s]: %w", l.cfg.Namespace, l.cfg.Group, l.gate.Err())
		case do := <-l.results:
			do(l.core)
		case do := <-l.commands:
			do(l.core)
		case <-end:
			end = nil
			l.core.Leave(time.Now(), true)
		}
	}
}

// rejoin makes the replica take part again under a new ID after it has lost its lease. Its runs are interrupted, and its watches go on. It
// reports whether the replica could do so.
func (l *loop) rejoin() bool {
	l.gate.Suspend()
	if l.cfg.ExitOnLapse {
		return false
	}
	l.cancel()
	ended := make(chan struct{})
	l.others.Go(func() {
		l.wg.Wait()
		l.closeAll()
		close(ended)
	})
	select {
	case <-ended:
	case <-time.After(l.cfg.Timing.Lease): // a run does not end
		return false
	}
	l.gate.Suspend() // a renewal was in progress
	l.rejoins++
	id := fmt.Sprintf("%s-%d", l.cfg.ID, l.rejoins)
	core := l.core.Rejoin(id, time.Now())
	if core == nil {
		return false
	}
	l.cfg.Logger.Warn("shards: the lease was ended by another replica, or a Lease was changed by hand; the runs have ended, and the replica joins again", "replica", l.leases.id, "as", id)
	l.ctx, l.cancel = context.WithCancel(l.running)
	l.leases, l.core = l.newLeases(id), core
	l.saw()
	return true
}

// leave deletes the replica's own lease, which has no slots left.
func (l *loop) leave() error {
	if err := l.leases.leave(l.ctx, l.cfg.Timing.Renew); err != nil {
		l.cfg.Logger.Warn("cannot delete the lease; other replicas will delete it after it has expired", "lease", l.leases.id, "error", err.Error())
	}
	return nil
}

// saw passes the current state of the watch to the core.
func (l *loop) saw() {
	all, record, version, err := l.leases.read(l.all.leases())
	l.report("read", err)
	l.core.Saw(time.Now(), all, record, version)
}

// step carries out the effects of one step of the core.
func (l *loop) step() (again time.Time) {
	if l.load.due(time.Now(), l.cfg.Timing.Renew) {
		l.core.SetLoad(l.load.measure(time.Now(), l.spent()))
		l.core.SetSummary(l.cfg.Summary())
	}
	effects, again := l.core.Step(time.Now())
	for _, e := range effects {
		l.start(e)
	}
	l.publish(time.Now())
	return again
}

// publish stores the current View, and answers waiting calls of Split.
func (l *loop) publish(now time.Time) {
	record, leases, own := l.core.Slots(now)
	if record != nil {
		for controller, waits := range l.waits {
			if by := record.Keys[controller]; by != "" {
				for _, answer := range waits {
					answer <- by
				}
				delete(l.waits, controller)
			}
		}
	}
	before := l.View()
	v := &View{
		ID: l.leases.id, Record: record, Leases: leases, Own: own, Lapsed: !l.core.MayWrite(now), Slots: len(l.core.phases), Moves: before.Moves + moves(l.leases.id, before.Record, record),
		Ended: l.ended, Patience: max(l.cfg.Timing.Lease/3, 5*l.cfg.Timing.Renew/2),
	}
	v.Wrong = l.alarm.check(now, v.Coverage(now), l.cfg.Timing.Lease+2*l.cfg.Timing.Renew)
	l.view.Store(v)
	if v.Wrong != before.Wrong {
		l.warn(now, v)
	}
}

// warn logs that slots are run by no replica, or by several, or that this is over.
func (l *loop) warn(now time.Time, v *View) {
	n := News{Warning: true, Reason: "SlotsNotCovered", Note: v.Wrong + "; wasmctl status --all-replicas shows which replica runs each slot"}
	if v.Wrong == "" {
		n = News{Reason: "SlotsCovered", Note: "each slot is run by one replica, or is on its way to one"}
	}
	l.tell(n, v.speaks(now))
}

// tell logs news. It also records them if this replica speaks for all.
func (l *loop) tell(n News, speaks bool) {
	level := slog.LevelInfo
	if n.Warning {
		level = slog.LevelWarn
	}
	l.cfg.Logger.Log(l.ctx, level, "shards: "+n.Note, "reason", n.Reason)
	if speaks {
		l.cfg.News(n)
	}
}

// start carries out an effect. Its result is sent to the loop.
func (l *loop) start(e Effect) {
	var do func(context.Context) Result
	switch e.Kind {
	case Renew:
		do = func(ctx context.Context) (r Result) {
			sent := time.Now()
			var err error
			if r.Lost, err = l.leases.renew(ctx, e.State); err == nil && !r.Lost {
				l.gate.Renewed(sent)
			}
			return l.result("renew the lease", r, err)
		}
	case Fence:
		silent := e.ID != l.core.former
		if silent {
			l.cfg.Logger.Warn("a replica is silent: ending its lease", "replica", e.ID)
		}
		do = func(ctx context.Context) (r Result) {
			var err error
			if r.Lost, err = l.leases.end(ctx, e.ID, e.Version); err == nil && !r.Lost && silent {
				l.command(l.ctx, func(*Core) { l.ended++ })
			}
			return l.result("end the lease of another replica", r, err)
		}
	case Forget:
		do = func(ctx context.Context) (r Result) {
			var err error
			r.Lost, err = l.leases.forget(ctx, e.ID, e.Version)
			return l.result("delete the lease of a dead replica", r, err)
		}
	case Commit:
		anew := l.core.known && e.Version == ""
		do = func(ctx context.Context) (r Result) {
			var err error
			if r.Version, r.Lost, err = l.leases.commit(ctx, e.Record, e.Version); err == nil && !r.Lost && anew {
				l.tell(News{Warning: true, Reason: "RecordReplaced", Note: "the record was deleted; the replicas have stopped their runs, and share the slots anew"}, true)
			}
			return l.result("write the record", r, err)
		}
	default:
		l.startSlot(e)
		return
	}
	l.wg.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, l.cfg.Timing.Lease/6) // leaves time for other replicas
		defer cancel()
		l.done(e, do(ctx))
	})
}

// result converts the result of a request, and makes the loop report it.
func (l *loop) result(what string, r Result, err error) Result {
	r.Err = err != nil
	l.command(l.ctx, func(*Core) { l.report(what, err) })
	return r
}

func (l *loop) done(e Effect, r Result) {
	select {
	case l.results <- func(c *Core) { c.Done(time.Now(), e, r) }:
	case <-l.ctx.Done():
	}
}

// source matches the local address of a connection in the text of an error, which differs each time.
var source = regexp.MustCompile(`\S+->`)

// report logs why an operation failed, once until the error changes.
func (l *loop) report(what string, err error) {
	if err == nil {
		delete(l.failed, what)
		return
	}
	if text := source.ReplaceAllString(err.Error(), ""); l.failed[what] != text {
		l.failed[what] = text
		l.cfg.Logger.Warn("shards: cannot "+what, "error", err.Error(), "next", "wasmctl keeps retrying; this replica needs get, list, watch, create, update and delete on leases.coordination.k8s.io in its namespace")
	}
}
