package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/diff"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Bounds of what is kept of one operation.
const (
	maxStateBytes = 64 << 10 // larger objects are not compared
	maxErrorBytes = 2 << 10
)

// record makes the session's history. It is called before load.
func (s *session) record() {
	s.history = history.New(int(s.opts.historyBytes))
	s.history.Shown = s.shownRelated
	if f := feedOf(s.log); f != nil {
		f.secrets.Store(&s.secrets)
	}
	if s.process.opts.showWrites || s.opts.rights.dryRun != "" {
		s.writes = newWritePrinter(s.process.opts.streams.out)
	}
	s.observers = append(s.observers, s.observed)
}

// began tells the history that a guest is about to be called.
func (s *session) began(generation uint64, req *abi.Request) {
	s.history.Begin(&history.Running{
		ID: req.ID, Key: req.Key, Generation: generation, Since: time.Now(), Reason: req.Reason,
		Object: s.shownObject(s.kind.Group, s.kind.Kind.Kind, req.Object),
	})
}

// hidden tells the history that the predicates have hidden an event.
func (s *session) hidden(ref reflector.ObjectRef, unchanged predicate.Words) {
	s.history.Hide(ref, time.Now(), unchanged.String())
}

// relatedChanged tells the history of a change of an object of another kind.
func (s *session) relatedChanged(resource string, ev reflector.Event) {
	var before, after []byte
	if ev.Old != nil {
		before = ev.Old.Msgpack()
	}
	if ev.New != nil && ev.Type != reflector.Deleted {
		after = ev.New.Msgpack()
	}
	if len(before) <= maxStateBytes && len(after) <= maxStateBytes {
		s.history.Related(resource, ev.Ref(), time.Now(), before, after)
	}
}

// shownRelated is shownObject for a resource that a reason names.
func (s *session) shownRelated(resource string, packed []byte) []byte {
	kind := ""
	if resource == "secrets" {
		kind = "Secret"
	}
	return s.shownObject("", kind, packed)
}

// recordEnd tells the history of a run that is over, and who writes traces.
func (s *session) recordEnd(out *applier.Outcome) {
	run := history.Run{
		ID: out.ID, Reasons: out.Reasons, Queued: out.Queued, Started: out.Started, Took: out.Duration, Generation: out.Generation,
		Attempt: out.Attempt, Finalize: out.Finalize, Action: out.Action, DecidedBy: string(out.DecidedBy), Hold: out.Hold,
		Failed: out.Failed(), Kind: string(failureOf(out)), Fuel: out.Fuel, Stale: out.Stale,
	}
	if out.Err != nil {
		run.Error = diff.Clip(s.secrets.Text(errorText(out.Err)), maxErrorBytes)
	}
	s.history.End(out.Key, &run)
	if s.tracing != nil {
		s.tracing.write(s.name, out.Key, &run)
	}
}

// observed tells the history, and whoever watches, what was asked of the API.
func (s *session) observed(ctx context.Context, e *kubeapi.Exchange) {
	run := abi.RunFrom(ctx)
	if run == nil && s.writes == nil {
		return // the host asks for itself
	}
	op, about := s.operation(run, e)
	if run != nil {
		if op.Effect == history.Denied {
			s.denied.Add(1)
		}
		about = s.history.Did(run.ID, op, about)
	}
	s.printWrite(ctx, e, op, about)
}

// operation is an exchange as the history has it, with nothing in it that must
// not be shown. The run is nil where the host asks for itself.
func (s *session) operation(run *abi.Run, e *kubeapi.Exchange) (op history.Op, about history.States) {
	op = history.Op{
		Name: string(e.Op), Resource: e.Kind.Name(), Subresource: e.Subresource, Key: e.Key, DryRun: e.DryRun,
		Started: e.Started, Took: e.Took, Effect: effectOf(e),
	}
	if e.Err != nil {
		op.Error = diff.Clip(s.secrets.Text(e.Err.Error()), maxErrorBytes)
		op.Key.Name = s.secrets.Text(op.Key.Name) // it may never have been an object's
		return op, about
	}
	if whole := e.Subresource == "" || e.Subresource == "status"; whole && e.Op != abi.OpAPIList {
		about.After = s.shownJSON(e.Kind, e.Answer)
		about.Before = s.shownJSON(e.Kind, e.Before)
		if e.Writes() && e.Op != abi.OpAPIDelete {
			about.Sent = s.shownJSON(e.Kind, e.Sent)
		}
		if op.Key.Name == "" && about.After != nil {
			op.Key = nameIn(e.Answer, op.Key)
		}
	}
	if about.Before == nil && run != nil && e.Writes() && e.Kind.GVR() == s.kind.GVR() && e.Key == run.Key {
		about.Before = s.shownObject(e.Kind.Group, e.Kind.Kind, run.Object)
	}
	return op, about
}

// effectOf says what came of an operation, as far as its answer says.
func effectOf(e *kubeapi.Exchange) history.Effect {
	switch {
	case e.Status == abi.StatusDenied:
		return history.Denied
	case e.Err != nil:
		return history.Failed
	case e.Op == abi.OpAPIDelete:
		return history.Deleted
	case e.Created:
		return history.Created
	case e.Writes(), e.Op == abi.OpEventRecord:
		return history.Written
	}
	return history.Read
}

// nameIn returns the key with the name that the API server has made up.
func nameIn(js []byte, key abi.Key) abi.Key {
	if o, err := reflector.PackJSON(js, reflector.Options{Metadata: true}); err == nil {
		return o.Ref()
	}
	return key
}

// shownJSON packs the JSON of an object, with the values of Secrets hidden; nil
// where it cannot be, or is too large.
func (s *session) shownJSON(kind kubeapi.Kind, js []byte) []byte {
	if len(js) == 0 || len(js) > maxStateBytes {
		return nil
	}
	var t abi.Transcoder
	t.DropManagedFields = true
	packed, ok := t.Append(nil, js)
	if !ok {
		return nil
	}
	return s.shownObject(kind.Group, kind.Kind, slices.Clip(packed))
}

// shownObject is a packed object with the values of Secrets hidden, also of
// those that the module has copied elsewhere, so that different ones still
// differ.
func (s *session) shownObject(group, kind string, packed []byte) []byte {
	if len(packed) > maxStateBytes {
		return nil
	}
	if packed == nil || !redact.IsSecret(group, strings.TrimSuffix(kind, "List")) && !s.secrets.Found(packed) {
		return packed
	}
	object, err := abi.DecodeObject(packed)
	if err != nil {
		return nil
	}
	hidden, err := abi.AppendValue(nil, s.secrets.DistinctAny(redact.Distinct(group, kind, object)))
	if err != nil {
		return nil
	}
	return hidden
}
