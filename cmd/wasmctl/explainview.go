package main

import (
	"fmt"

	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// runView is a run as the admin endpoint shows it.
func (s *session) runView(r *history.Run) admin.Run {
	out := admin.Run{
		ID: r.ID, Reasons: reasonTexts(&r.Reasons), Started: r.Started, Queued: admin.Duration(r.Queued), Took: admin.Duration(r.Took),
		Generation: r.Generation, Attempt: r.Attempt, Finalize: r.Finalize, Result: resultOf(r), Kind: r.Kind, Error: r.Error,
		Next: actionText(r.Action), DecidedBy: r.DecidedBy, Hold: admin.Duration(r.Hold), Fuel: r.Fuel, Stale: r.Stale,
		First: r.First, Changes: changeViews(r.Changes), Related: relatedViews(r.Related), Operations: opViews(r.Ops), MoreOperations: r.Dropped,
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

func changeViews(changes []history.Change) []admin.Change {
	var out []admin.Change
	for _, c := range changes {
		out = append(out, admin.Change(c))
	}
	return out
}

func relatedViews(list []history.RelatedChange) []admin.Related {
	var out []admin.Related
	for _, c := range list {
		out = append(out, admin.Related{Resource: c.Resource, Object: c.Key.String(), Effect: string(c.Effect), Changes: changeViews(c.Changes)})
	}
	return out
}

func opViews(ops []history.Op) []admin.Operation {
	var out []admin.Operation
	for i := range ops {
		o := &ops[i]
		out = append(out, admin.Operation{
			Name: o.Name, Resource: o.Resource, Subresource: o.Subresource, Object: o.Key.String(), DryRun: o.DryRun,
			Effect: string(o.Effect), Took: admin.Duration(o.Took), Error: o.Error, Changes: changeViews(o.Changes),
		})
	}
	return out
}
