package main

import (
	"fmt"

	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// runView is a run as the admin endpoint shows it.
func (s *session) runView(r *history.Run) admin.Run {
	out := admin.Run{
		ID: r.ID, Reasons: reasonTexts(&r.Reasons), Started: r.Started, Queued: admin.Duration(r.Queued), Took: admin.Duration(r.Took),
		Generation: r.Generation, Attempt: r.Attempt, Finalize: r.Finalize, Result: resultOf(r), Kind: r.Kind, Error: r.Error,
		Next: actionText(r.Action), DecidedBy: r.DecidedBy, Hold: admin.Duration(r.Hold), Fuel: r.Fuel, Stale: r.Stale,
		First: r.First, Changes: s.changeViews(r.Changes), Related: s.relatedViews(r.Related), Operations: s.opViews(r.Ops), MoreOperations: r.Dropped,
	}
	if s.tracing != nil && r.ID != "" {
		out.TraceID = s.tracing.traceID(r.ID)
	}
	return out
}

func resultOf(r *history.Run) string {
	switch {
	case r.Failed:
		return "failed"
	case r.Error == "":
		return "succeeded"
	case r.Generation == 0 || r.Error == applier.ErrPaused.Error() || r.Error == applier.ErrQuarantined.Error() || r.Error == applier.ErrDeleting.Error():
		return "skipped"
	}
	return "interrupted"
}

// reasonTexts are the reasons, the first one first.
func reasonTexts(r *queue.Reasons) []string {
	out := []string{r.First.String()}
	for i := range r.More {
		out = append(out, r.More[i].String())
	}
	if r.Dropped > 0 {
		out = append(out, fmt.Sprintf("%d more", r.Dropped))
	}
	return out
}

// changeViews hides what was not known to be a value of a Secret when the change
// was recorded.
func (s *session) changeViews(changes []diff.Change) []admin.Change {
	var out []admin.Change
	for _, c := range changes {
		c.Path, c.Before, c.After = s.secrets.Text(c.Path), s.secrets.Text(c.Before), s.secrets.Text(c.After)
		out = append(out, admin.Change(c))
	}
	return out
}

func (s *session) relatedViews(list []history.RelatedChange) []admin.Related {
	var out []admin.Related
	for _, c := range list {
		out = append(out, admin.Related{Resource: c.Resource, Object: c.Key.String(), Effect: string(c.Effect), Changes: s.changeViews(c.Changes)})
	}
	return out
}

func (s *session) opViews(ops []history.Op) []admin.Operation {
	var out []admin.Operation
	for i := range ops {
		o := &ops[i]
		out = append(out, admin.Operation{
			Name: o.Name, Resource: o.Resource, Subresource: o.Subresource, Object: o.Key.String(), DryRun: o.DryRun,
			Effect: string(o.Effect), Took: admin.Duration(o.Took), Error: o.Error, Changes: s.changeViews(o.Changes),
		})
	}
	return out
}
