package telemetry

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// Run is a run as the admin endpoint shows it.
func (r *Recorder) Run(run *history.Run) admin.Run {
	out := admin.Run{
		ID: run.ID, Reasons: ReasonTexts(&run.Reasons), Started: run.Started, Queued: admin.Duration(run.Queued), Took: admin.Duration(run.Took),
		Revision: run.Revision, Attempt: run.Attempt, Finalize: run.Finalize, Result: resultOf(run), Kind: run.Kind, Error: run.Error,
		Next: ActionText(run.Action), DecidedBy: run.DecidedBy, Delay: admin.Duration(run.Delay), Fuel: run.Fuel, Stale: run.Stale,
		First: run.First, Changes: r.changes(run.Changes), Related: r.related(run.Related), Operations: r.Operations(run.Ops), MoreOperations: run.Dropped,
	}
	if r.cfg.Tracing != nil && run.ID != "" {
		out.TraceID = r.cfg.Tracing.TraceID(run.ID)
	}
	return out
}

func resultOf(r *history.Run) string {
	switch {
	case r.Failed:
		return "failed"
	case r.Error == "":
		return "succeeded"
	case r.Skipped || r.Revision == 0 || r.Error == applier.ErrPaused.Error() || r.Error == applier.ErrQuarantined.Error() || r.Error == applier.ErrDeleting.Error():
		return "skipped"
	}
	return "interrupted"
}

// ReasonTexts are the reasons, the first one first.
func ReasonTexts(r *queue.Reasons) []string {
	out := []string{r.First.String()}
	for i := range r.More {
		out = append(out, r.More[i].String())
	}
	if r.Dropped > 0 {
		out = append(out, fmt.Sprintf("%d more", r.Dropped))
	}
	return out
}

// changes hides what was not known to be a value of a Secret when the change
// was recorded.
func (r *Recorder) changes(changes []diff.Change) []admin.Change {
	var out []admin.Change
	for _, c := range changes {
		c.Path, c.Before, c.After = r.Secrets.Text(c.Path), r.Secrets.Text(c.Before), r.Secrets.Text(c.After)
		out = append(out, admin.Change(c))
	}
	return out
}

func (r *Recorder) related(list []history.RelatedChange) []admin.Related {
	var out []admin.Related
	for _, c := range list {
		out = append(out, admin.Related{Resource: c.Resource, Object: c.Key.String(), Effect: string(c.Effect), Changes: r.changes(c.Changes)})
	}
	return out
}

// Operations are operations as the admin endpoint shows them.
func (r *Recorder) Operations(ops []history.Op) []admin.Operation {
	var out []admin.Operation
	for i := range ops {
		o := &ops[i]
		out = append(out, admin.Operation{
			Name: o.Name, Resource: o.Resource, Subresource: o.Subresource, Object: o.Key.String(), DryRun: o.DryRun,
			Effect: string(o.Effect), Took: admin.Duration(o.Took), Error: o.Error, Changes: r.changes(o.Changes),
		})
	}
	return out
}

// ReasonText is the first two reasons, and how many there are besides.
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

// ErrorText is the error, without a reason that its message says already.
func ErrorText(err error) string {
	if e, ok := err.(*abi.ResultError); ok && strings.Contains(e.Message, e.Reason) { //nolint:errorlint // wrapped, it has more to say
		return strings.TrimSpace(e.Message)
	}
	return strings.TrimSpace(err.Error())
}

// ActionText is the action without excess digits.
func ActionText(a abi.Action) string {
	if a.After > time.Second {
		a.After = a.After.Round(10 * time.Millisecond)
	} else if a.After > time.Millisecond {
		a.After = a.After.Round(time.Millisecond)
	}
	return a.String()
}

// Write is a write that the API server has answered, with what it has changed.
// Values of Secrets are hidden.
type Write struct {
	admin.Operation

	// Run is the object whose run wrote; the zero Key where it was the host.
	Run abi.Key
	// Event is an event that a dry run would have recorded, as text; then there is no
	// operation.
	Event string
	// ID tells writes to the same object apart, as those of several patches are.
	ID string
}

// reportWrite tells OnWrite of an operation that has been answered.
func (r *Recorder) reportWrite(run *abi.Run, e *kubeapi.Exchange, op history.Op, about history.States) {
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
		w.Operation = r.Operations([]history.Op{op})[0]
	default:
		return
	}
	r.cfg.OnWrite(w)
}

// printBounds are those of what is printed at once: more than the history keeps.
var printBounds = diff.Bounds{Changes: 200, Value: 400}
