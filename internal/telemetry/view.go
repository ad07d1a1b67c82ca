// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Runs returns the last runs of an object in the form shown to users: with trace IDs, and
// without values of Secrets that have become known since.
func (r *Recorder) Runs(key abi.Key) []history.Run {
	runs := r.History.Runs(key)
	for i := range runs {
		run := &runs[i]
		run.Hide(r.Secrets.Text)
		if r.cfg.Tracing != nil && run.ID != "" {
			run.TraceID = r.cfg.Tracing.TraceID(run.ID)
		}
	}
	return runs
}

// Running returns the runs that have not ended, in the same form.
func (r *Recorder) Running() []history.Running {
	runs := r.History.Running()
	for i := range runs {
		for j := range runs[i].Operations { // a copy
			runs[i].Operations[j].Hide(r.Secrets.Text)
		}
	}
	return runs
}

// resultOf classifies the outcome of a run.
func resultOf(out *applier.Outcome) history.Result {
	switch {
	case out.Failed():
		return history.ResultFailed
	case out.Err == nil:
		return history.ResultSucceeded
	case errors.Is(out.Err, applier.ErrInterrupted):
		return history.ResultInterrupted
	}
	return history.ResultSkipped
}

// ReasonText returns the first two reasons and the number of the others.
func ReasonText(r *queue.Reasons) string {
	text := r.First.String()
	if len(r.More) > 0 {
		text += ", " + r.More[0].String()
	}
	if more := len(r.More) + r.Dropped - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ErrorText returns the text of an error, without its reason if the message already
// contains it.
func ErrorText(err error) string {
	if e, ok := err.(*abi.ResultError); ok && strings.Contains(e.Message, e.Reason) { //nolint:errorlint // wrapped, it has more to say
		return strings.TrimSpace(e.Message)
	}
	return strings.TrimSpace(err.Error())
}

// Write is a write that the API server has answered, with the changes that it made. Values
// of Secrets are hidden.
type Write struct {
	history.Operation

	// Run is the object whose run sent the write; the zero Key if the host sent it.
	Run abi.Key
	// Event is the text of an event that a dry run would have recorded; the Operation is
	// then empty.
	Event string
	// ID distinguishes several writes to the same object, such as several patches.
	ID string
}

// reportWrite calls OnWrite for a write that has been answered.
func (r *Recorder) reportWrite(run *abi.Run, e *kubeapi.Exchange, op history.Operation, about history.States) {
	if r.cfg.OnWrite == nil {
		return
	}
	w := Write{}
	if run != nil {
		w.Run = run.Key
	}
	switch ev := e.Event; {
	case ev != nil && e.DryRun:
		text := fmt.Sprintf("about %s %s: %s %s: %s", ev.Regarding.Kind, ev.Regarding.Name, ev.Type, ev.Reason, ev.Note)
		w.Event, w.ID, w.DryRun = r.Secrets.Text(text), ev.Regarding.String()+ev.Type+ev.Reason, true
	case e.Writes():
		if e.Op == abi.OpAPIPatch { // a run may patch an object in several ways
			sum := sha256.Sum256(e.Sent)
			w.ID = string(sum[:])
		}
		op.Settle(about, printBounds)
		op.Hide(r.Secrets.Text)
		w.Operation = op
	default:
		return
	}
	r.cfg.OnWrite(w)
}

// printBounds bounds writes that are printed immediately; the bounds of the history are
// lower.
var printBounds = diff.Bounds{Changes: 200, Value: 400}
