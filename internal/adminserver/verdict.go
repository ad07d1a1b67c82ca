// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/engine"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/leader"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// verdict determines the state of an object, and why it does not run.
type verdict struct {
	e      *admin.Explanation
	c      *engine.Controller
	gate   *leader.Gate // nil without an election
	leader string       // its identity; empty if it is unknown
	view   *shard.View  // nil unless replicas share the objects
	key    abi.Key
	now    time.Time
	stored *reflector.Object // nil if the cache does not have it
	uid    string            // empty if it is unknown, or if the controller does not watch the object
	object controller.Object
	err    error // the controller's loop could not answer
}

// fill copies the state of the queue.
func (v *verdict) fill() {
	o := &v.object
	v.e.FailedRuns = o.FailedRuns
	if o.FailedRuns > 0 {
		v.e.FirstFailed = &o.FirstFailed
	}
	if o.Running {
		v.e.Running = &history.Running{}
		for _, r := range v.c.Telemetry.Running() {
			if r.Key == v.key {
				v.e.Running = &r
			}
		}
		v.e.Running.Since = o.Since
	}
	if o.State != scheduler.Absent {
		v.e.Pending = &admin.Pending{State: o.State.String(), At: o.At, Reasons: o.Msg, Low: o.Priority == scheduler.Low}
	}
}

// report adds a reason. The first reason with a state sets the state of the object.
func (v *verdict) report(state, format string, args ...any) {
	if v.e.State == "" {
		v.e.State = state
	}
	v.e.Why = append(v.e.Why, fmt.Sprintf(format, args...))
}

// judge checks all causes that can prevent the object from running, the most general first.
func (v *verdict) judge(ctx context.Context) {
	if v.object.Running {
		v.running()
	}
	v.process()
	missing, why := v.missing(ctx)
	if v.elsewhere(missing) {
		return
	}
	v.watches()
	switch {
	case v.stored == nil:
		v.report(missing, "%s", why)
		v.stranded()
	case paused(v.stored):
		v.report("paused", "the object has the annotation %s: remove it, or set it to false", applier.PausedAnnotation)
	}
	v.hot()
	v.pending()
	v.last()
	v.filtered()
	if v.e.State == "" {
		v.report("idle", "nothing triggers it: it runs when it or something that it depends on changes")
	}
	v.here()
}

func (v *verdict) running() {
	if v.e.Running.ID == "" {
		v.report("running", "it has been running for %s without a call to the module: it waits for a free instance, or for the cache to catch up with its last writes", humanize.Age(v.now, v.object.Since))
		return
	}
	limit := ""
	if d := v.c.Timeout(); d > 0 {
		limit = fmt.Sprintf("; a run may take %v", d)
	}
	v.report("running", "it has been running for %s (%s)%s", humanize.Age(v.now, v.object.Since), v.e.Running.ID, limit)
}

// process explains causes that affect the whole controller.
func (v *verdict) process() {
	if v.err != nil {
		v.report("not running", "the controller is not running: %v", v.err)
	}
	if v.c.Runtime.Stats().Paused {
		v.report("paused", "the controller is paused: wasmctl resume %s", v.c.Name())
	}
	switch {
	case v.gate == nil || v.gate.Elected():
	case v.view != nil:
		v.report(admin.StateStandby, "this replica has no lease yet: it reconciles nothing")
	default:
		v.report(admin.StateStandby, "%s leads: this replica reconciles once it has the lease", cmp.Or(v.leader, "another replica"))
	}
}

// watches explains which watches do not deliver events.
func (v *verdict) watches() {
	for i, w := range v.c.Runtime.Stats().Watches {
		if w.State.Phase == watcher.Ready {
			continue
		}
		state := ""
		if i == 0 || !v.ready() {
			state = "watch " + w.State.Phase.String()
		}
		text := fmt.Sprintf("the watch of %s is %s", w.Source, w.State.Phase)
		if w.State.Message != "" {
			text += ": " + w.State.Message
		}
		if !v.ready() {
			text += "; no reconcile starts before all watches have synced"
		}
		v.report(state, "%s", text)
	}
}

// ready reports whether all watches have synced once, so that reconciles start.
func (v *verdict) ready() bool { return len(v.c.Runtime.Unsynced()) == 0 }

func paused(o *reflector.Object) bool {
	value, _ := o.Annotation(applier.PausedAnnotation)
	return applier.Paused(value)
}

// hot explains that the object is quarantined or delayed.
func (v *verdict) hot() {
	if q := v.object.Quarantine; q != nil {
		v.report("quarantined", "it has been quarantined for %v, after %d consecutive runs that ended in a %s: it is retried in %v, or when it or the module changes, or with wasmctl trigger; last error: %s",
			v.now.Sub(q.Since).Round(time.Second), q.Runs, q.Kind, q.Until.Sub(v.now).Round(time.Second), v.c.Telemetry.Secrets.Text(q.Text))
	}
	switch l := &v.object.Loop; l.Cause {
	case guard.CauseNone:
	case guard.CauseWrites, guard.CauseContested, guard.CauseChain:
		v.report("", "it is in a hot loop: %s, %d runs in a row, so the hot-loop guard delays it by %v after each run", l.Cause, l.Runs, l.Delay)
	case guard.CauseRequeue, guard.CauseRetry:
		v.report("", "it is in a hot loop: %s, %d in a row, so the hot-loop guard starts the next one after %v, unless something else triggers it; a delay of %v or more is never changed",
			l.Cause, l.Runs, l.Delay, guard.MinRequeue)
	}
}

// pending explains when the next run starts.
func (v *verdict) pending() {
	o := &v.object
	in := o.At.Sub(v.now).Round(10 * time.Millisecond)
	why := strings.Join(o.Msg.Texts(), ", ")
	switch o.State {
	case scheduler.Absent:
	case scheduler.Waiting:
		v.report("waiting", "it runs again in %v (%s)", in, why)
	case scheduler.Debounced:
		v.report("debounced", "it runs in %v, once it has not been triggered for %v (%s)", in, v.c.Debounce(), why)
	case scheduler.Delayed:
		v.report("delayed", "it can run again in %v (%s)", in, why)
	case scheduler.Blocked:
		v.report("running", "it runs again after this run (%s)", why)
	case scheduler.Ready:
		v.waitsForWorker(why)
	}
}

func (v *verdict) waitsForWorker(why string) {
	stats := v.c.Runtime.Stats()
	v.report("ready", "it has been due for %s (%s): %d of %d workers are busy, %d objects are due",
		humanize.Age(v.now, v.object.At), why, stats.Running, v.c.Concurrency(), stats.Ready)
	for i, r := range v.c.Telemetry.History.Running() {
		if i == 0 && v.now.Sub(r.Since) > time.Second {
			v.report("", "%s has been running for %s", r.Key, humanize.Age(v.now, r.Since))
		}
	}
}

// last explains the result of the last run.
func (v *verdict) last() {
	if len(v.e.Runs) == 0 {
		if v.stored != nil && v.object.State == scheduler.Absent && !v.object.Running {
			v.report("", "no run is known: it has not run, or the history no longer has its runs (--history)")
		}
		return
	}
	switch r := &v.e.Runs[0]; {
	case r.NoChange:
		v.report("", "its last run was skipped: nothing it read has changed; wasmctl trigger --force runs it all the same")
	case r.Result == history.ResultFailed && v.object.State == scheduler.Absent && !v.object.Running:
		v.report("failed", "its last run failed, and it waits for a change: %s", humanize.FirstLine(r.Error))
	case r.Result == history.ResultFailed:
		v.report("", "the last %d runs failed: %s", max(1, v.e.FailedRuns), humanize.FirstLine(r.Error))
	}
}

// filtered explains which events the predicates have filtered out.
func (v *verdict) filtered() {
	if h := v.e.Hidden; h != nil {
		v.report("idle", "predicates have hidden %s since the last run, the last %s ago: no change of %s", humanize.Plural(int(min(h.Count, math.MaxInt32)), "event"), humanize.Age(v.now, h.Last), h.Unchanged)
	}
}
