// SPDX-License-Identifier: Apache-2.0

// Package telemetry observes the runs of controllers: their last runs for wasmctl
// explain, their metrics, and their traces.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/metrics"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Bounds of the data that is recorded for one operation.
const (
	maxStateBytes = 64 << 10 // larger objects are not compared
	maxErrorBytes = 2 << 10
)

// Config configures a Recorder.
type Config struct {
	// History is the memory limit of the last runs, in bytes.
	History int
	// Tracing writes a trace for each run; may be nil.
	Tracing *Tracing
	// Metrics counts runs, calls and requests; may be nil.
	Metrics *metrics.Controller
	// OnWrite, if not nil, is called for each write that the API server has answered.
	OnWrite func(Write)
	// Secrets are the known values of Secrets. If nil, they are empty at first.
	Secrets *redact.Values
}

// Recorder observes the runs of one controller for its history, metrics and traces. It
// implements applier.Observer and kubeapi.Observer. It is safe for concurrent use.
type Recorder struct {
	// Secrets are the values of Secrets that the module has read, or has as settings. They are
	// hidden in everything that is recorded.
	Secrets *redact.Values
	// History has the last runs.
	History *history.Recorder

	cfg        Config
	controller string     // set by For
	kind       kinds.Kind // the reconciled kind; set by For
	denied     atomic.Uint64
}

// NewRecorder returns a Recorder. For must be called before the first run.
func NewRecorder(cfg Config) *Recorder {
	r := &Recorder{History: history.New(cfg.History), Secrets: cmp.Or(cfg.Secrets, &redact.Values{}), cfg: cfg}
	r.History.Shown = r.shownRelated
	return r
}

// For sets the observed controller and its kind.
func (r *Recorder) For(controller string, kind kinds.Kind) { r.controller, r.kind = controller, kind }

// Denied returns the number of requests of runs that the policy denied.
func (r *Recorder) Denied() uint64 { return r.denied.Load() }

// Started records that a guest is about to be called.
func (r *Recorder) Started(revision uint64, req *abi.Request) {
	r.History.Begin(&history.Running{
		ID: req.ID, Key: req.Key, Revision: revision, Since: time.Now(), Reasons: queue.Reasons{First: req.Reason},
		Object: r.shownObject(r.kind.Group, r.kind.Kind, req.Object),
	})
}

// Returned records that the guest has returned.
func (r *Recorder) Returned(id string) {
	if r.cfg.Tracing != nil { // only traces need this time
		r.History.Returned(id, time.Now())
	}
}

// Ended records the result of a run, and writes its trace.
func (r *Recorder) Ended(out *applier.Outcome) {
	r.count(out)
	run := history.Run{
		ID: out.ID, Reasons: out.Reasons, Queued: history.Duration(out.Queued), Started: out.Started, Took: history.Duration(out.Duration),
		Revision: out.Revision, Attempt: out.Attempt, Finalize: out.Finalize,
		Ending: history.Ending{
			Result: resultOf(out), Kind: string(out.Failure), NoChange: errors.Is(out.Err, applier.ErrUnchanged),
			Next: history.Next{Action: out.Action}, DecidedBy: string(out.DecidedBy), Delay: history.Duration(out.Delay),
		},
		Fuel: out.Fuel, Stale: out.Stale,
		Cost: history.Cost{Guest: out.Cost.Guest, Host: out.HostTime(), Requests: int64(out.Cost.Requests), Answers: out.Cost.Answers},
	}
	if out.Err != nil {
		run.Error = text.Clip(r.Secrets.Text(ErrorText(out.Err)), maxErrorBytes)
	}
	r.History.End(out.Key, &run)
	if r.cfg.Tracing != nil {
		r.cfg.Tracing.write(r.controller, out.Key, &run)
	}
}

// Hidden records that the predicates have filtered out an event.
func (r *Recorder) Hidden(ref reflector.ObjectRef, unchanged predicate.Words) {
	r.History.Hide(ref, time.Now(), unchanged.String())
}

// Related records a change of an object of another kind.
func (r *Recorder) Related(resource string, ev reflector.Event) {
	var before, after []byte
	if ev.Old != nil {
		before = ev.Old.Msgpack()
	}
	if ev.New != nil && ev.Type != reflector.Deleted {
		after = ev.New.Msgpack()
	}
	if len(before) <= maxStateBytes && len(after) <= maxStateBytes {
		r.History.Related(resource, ev.Ref(), time.Now(), before, after)
	}
}

// Requested records a request to the API. It implements kubeapi.Observer.
func (r *Recorder) Requested(ctx context.Context, e *kubeapi.Exchange) {
	if c := r.cfg.Metrics; c != nil {
		c.HostCall(e.Op, e.Status, e.Took)
	}
	run := abi.RunFrom(ctx)
	if run == nil && r.cfg.OnWrite == nil {
		return // a request of the host itself
	}
	op, about := r.operation(run, e)
	if run != nil {
		if op.Effect == history.Denied {
			r.denied.Add(1)
		}
		about = r.History.Did(run.ID, op, about)
	}
	r.reportWrite(run, e, op, about)
}

// count counts the result of a run in the metrics.
func (r *Recorder) count(out *applier.Outcome) {
	if r.cfg.Metrics == nil || errors.Is(out.Err, applier.ErrInterrupted) {
		return
	}
	run := metrics.Run{
		ID: out.ID, Reason: out.Reasons.First.Type, Requeue: out.Action.Requeue, After: out.Action.After, Took: out.Duration, Kind: out.Failure,
		Skipped: errors.Is(out.Err, applier.ErrUnchanged),
	}
	if run.Kind != "" {
		failed, ok := errors.AsType[*abi.ResultError](out.Err)
		run.Permanent = ok && failed.Class == abi.ErrorPermanent
	}
	r.cfg.Metrics.Ran(&run)
}

// Metric records a metric that the module reports, for host.Config. It succeeds even if
// nothing is counted: a module does not know whether metrics are on.
func (r *Recorder) Metric(kind int32, name string, value float64) abi.Status {
	if c := r.cfg.Metrics; c != nil {
		c.Custom(kind, name, value)
	}
	return abi.StatusOK
}

// OnCall returns the function that counts calls of guests, for host.Config, or nil if
// nothing is counted.
func (r *Recorder) OnCall() func(export string, took time.Duration, err error) {
	c := r.cfg.Metrics
	if c == nil {
		return nil
	}
	return func(export string, took time.Duration, err error) {
		kind := abi.FailureKind("")
		if call, ok := errors.AsType[*abi.CallError](err); ok {
			kind = call.Kind
		}
		c.Called(export, took, kind)
	}
}

// OutsideRuns counts the time that guests compute outside of runs, for host.Config.
func (r *Recorder) OutsideRuns(guest time.Duration) { r.History.OutsideRuns(time.Now(), guest) }
