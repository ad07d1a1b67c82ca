// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
)

// writeLog records the writes of a run for the guard.
type writeLog struct {
	trial   guard.Trial
	changes []abi.Write // writes that changed something, one per object
	before  [][]byte    // the objects of trial.Inspect before the run
	after   [][]byte    // the same after the run's last write to them
}

// begin is called before the guest.
func (r *run) begin(ctx context.Context) {
	w := &r.writeLog
	w.trial = r.a.guard.Begin(r.out.Key, &guard.Start{
		Time: r.out.Started, First: r.out.Reasons.First, More: r.out.Reasons.More,
		UID: r.head.uid, ResourceVersion: r.head.resourceVersion, Version: r.a.version,
	})
	if r.a.cfg.Cluster == nil || len(w.trial.Inspect) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.a.cfg.ClusterTimeout)
	defer cancel()
	w.before, w.after = make([][]byte, len(w.trial.Inspect)), make([][]byte, len(w.trial.Inspect))
	for i := range w.trial.Inspect {
		// If an object cannot be read now, none of its fields are reported.
		w.before[i], _ = r.a.cfg.Cluster.Inspect(ctx, w.trial.Inspect[i])
	}
}

// write is called after each write of the run (abi.Run.Wrote).
func (r *run) write(w abi.Write) {
	r.out.Writes++
	var version string
	var watched bool
	if r.a.cfg.Cache != nil {
		version, watched = r.a.cfg.Cache.Version(&w)
	}
	if r.reading != nil {
		r.reading.Wrote(&w, watched)
	}
	if !watched {
		return
	}
	if r.a.cfg.Wrote != nil {
		r.a.cfg.Wrote(r.out.Key, &w)
	}
	if r.a.cfg.AwaitWrites > 0 && w.ResourceVersion != version { // otherwise it changed nothing, or is in the cache already
		if len(r.wrote.list) == 0 {
			r.wrote.since = time.Now()
		}
		r.wrote.list = addWrite(r.wrote.list, &w)
	}
	if !r.a.guard.Off() && r.writeLog.note(&w, &r.head, version) {
		r.a.guard.Wrote(&r.writeLog.trial, &w, time.Now())
	}
}

// note records a write to a watched object, and reports whether it changed the object; cached is the object's version in the cache.
func (n *writeLog) note(w *abi.Write, self *head, cached string) (changed bool) {
	// A new object was not there before, although its event may be in the cache before its answer.
	changed = w.Op == abi.OpAPICreate || w.ResourceVersion != n.base(w, self, cached) || w.Deleted && w.ResourceVersion == ""
	if changed {
		n.changes, _ = guard.Put(n.changes, w)
	}
	for i := range n.before {
		if o := &n.trial.Inspect[i]; n.before[i] != nil && o.Key == w.Key && sameResource(o, w) {
			n.after[i] = bytes.Clone(w.Body)
		}
	}
	return changed
}

// base returns the resourceVersion that the object had before the write: that of the run's previous write to it, or the one that the run
// saw when it began. For an object that is neither the reconciled one nor changed by the last run, it is the version in the cache now,
// which may already include the write itself.
func (n *writeLog) base(w *abi.Write, self *head, cached string) string {
	for i := range n.changes {
		if o := &n.changes[i]; o.Key == w.Key && sameResource(o, w) {
			return o.ResourceVersion
		}
	}
	if w.UID != "" && w.UID == self.uid {
		return self.resourceVersion
	}
	for i := range n.trial.Wrote {
		if o := &n.trial.Wrote[i]; o.Key == w.Key && sameResource(o, w) {
			return n.trial.Versions[i]
		}
	}
	return cached
}

// end lets the guard judge a run that has chosen its action, and carries out the decision.
func (r *run) end() {
	if r.a.guard.Off() {
		return
	}
	w := &r.writeLog
	e := guard.End{
		Time: time.Now(), Changes: w.changes, Action: r.out.Action, Failed: r.out.Failed(), Fields: r.changedFields(), Gone: r.object == nil,
		Host: r.out.DecidedBy == DecidedByBackoff || r.out.DecidedBy == DecidedByQuarantine,
	}
	d := r.a.guard.End(r.out.Key, w.trial, &e)
	r.out.Delay = d.Delay
	if r.out.Action.After < d.Floor {
		r.out.Action.After, r.out.DecidedBy = d.Floor, DecidedByGuard
	}
	if d.Opened {
		loop := d // a copy, so that runs without a loop allocate nothing
		r.out.Loop = &loop
		r.logLoop(&loop)
	}
	if d.Closed {
		r.a.cfg.Logger.Info("the hot loop of the object has ended; no longer delaying it", "controller", r.a.cfg.Controller, "object", r.out.Key.String())
	}
}

// changedFields returns the fields that the run has changed in the objects that the guard inspects.
func (r *run) changedFields() (fields []guard.Field) {
	w := &r.writeLog
	for i := range w.after {
		if w.after[i] == nil {
			continue
		}
		changed, err := guard.Compare(&w.trial.Inspect[i], w.before[i], w.after[i])
		if err != nil {
			r.a.cfg.Logger.Debug("cannot compare the object before and after a write", "controller", r.a.cfg.Controller, "object", r.out.Key.String(), "error", err)
		}
		fields = append(fields, changed...)
	}
	return fields
}

// remember stores the writes that the next run must wait for.
func (r *run) remember() {
	if len(r.wrote.list) > 0 {
		r.a.writes.put(r.out.Key, r.wrote, time.Now())
	}
}

// remedies are the advice for each cause of a hot loop.
var remedies = map[guard.Cause]string{
	guard.CauseWrites:    "write only changes and no timestamps, or ignore the event with a predicate",
	guard.CauseContested: "let only one of them manage the field",
	guard.CauseChain:     "let each field be written for one object only, write only changes and no timestamps, or ignore the event with a predicate",
	guard.CauseRequeue:   "wait for a change, or requeue after " + guard.MinRequeue.String() + " or more",
	guard.CauseRetry:     "let error_policy retry after " + guard.MinRequeue.String() + " or more, or leave the retry to the host's back-off",
}

// logLoop logs the loop once, with advice.
func (r *run) logLoop(d *guard.Decision) {
	var objects, fields []string
	for i := range r.writeLog.changes {
		objects = append(objects, guard.ObjectName(&r.writeLog.changes[i]))
	}
	for _, f := range d.Fields {
		fields = append(fields, f.String())
	}
	r.a.cfg.Logger.Warn("the object is in a hot loop: "+d.Cause.String()+"; delaying it; "+remedies[d.Cause],
		"controller", r.a.cfg.Controller, "object", r.out.Key.String(), "reason", r.out.Reasons.First.String(), "reconcile_id", r.out.ID,
		slog.Int("runs", d.Runs), slog.Duration("delay", max(d.Delay, d.Floor)), slog.Any("written", objects), slog.Any("fields", fields))
}
