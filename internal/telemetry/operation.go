// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/internal/transcode"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// operation converts an exchange to the form of the history, without secret values. run is
// nil for a request of the host itself.
func (r *Recorder) operation(run *abi.Run, e *kubeapi.Exchange) (op history.Operation, about history.States) {
	op = history.Operation{
		Name: string(e.Op), Resource: e.Kind.Name(), Subresource: e.Subresource, Object: history.Object{Key: e.Key}, DryRun: e.DryRun,
		Started: e.Started, Took: history.Duration(e.Took), Effect: effectOf(e), TakenFrom: e.TakenFrom,
	}
	if e.Err != nil {
		op.Error = text.Clip(r.Secrets.Text(e.Err.Error()), maxErrorBytes)
		op.Object.Name = r.Secrets.Text(op.Object.Name) // the API server may not know this name, and a guest may have put a secret into it
		return op, about
	}
	if whole := e.Subresource == "" || e.Subresource == "status"; whole && e.Op != abi.OpAPIList {
		about.After = r.shownJSON(e.Kind, e.Answer)
		about.Before = r.shownJSON(e.Kind, e.Before.JSON)
		if e.Writes() && e.Op != abi.OpAPIDelete {
			about.Sent = r.shownJSON(e.Kind, e.Sent)
		}
		if op.Object.Name == "" && about.After != nil {
			op.Object.Key = nameIn(e.Answer, op.Object.Key)
		}
	}
	if about.Before == nil && e.Writes() {
		about.Before, about.Meta = r.replaced(run, e)
	}
	return op, about
}

// replaced returns the newest state of an object that was known when a write of it was sent, or only its
// metadata.
func (r *Recorder) replaced(run *abi.Run, e *kubeapi.Exchange) (state, meta []byte) {
	cached := e.Before.Cached
	if cached != nil && e.Before.Partial {
		return nil, r.shownObject(e.Kind.Group, e.Kind.Kind, cached.Msgpack())
	}
	if cached != nil {
		state = cached.Msgpack()
	}
	// The run's object may be newer: the answer to an added finalizer.
	if run != nil && e.Kind.GVR() == r.kind.GVR() && e.Key == run.Key && run.Object != nil && history.Newer(run.Object, state) {
		state = run.Object
	}
	return r.shownObject(e.Kind.Group, e.Kind.Kind, state), nil
}

// effectOf returns the effect of an operation, as far as its answer shows it.
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

// nameIn returns the key of an object whose name the API server has generated.
func nameIn(js []byte, key abi.Key) abi.Key {
	if o, err := reflector.PackJSON(js, reflector.Options{Metadata: true}); err == nil {
		return o.Ref()
	}
	return key
}

// shownRelated is shownObject for a resource that a reason names.
func (r *Recorder) shownRelated(resource string, packed []byte) []byte {
	kind := ""
	if resource == "secrets" {
		kind = "Secret"
	}
	return r.shownObject("", kind, packed)
}

// shownJSON packs the JSON of an object with the values of Secrets hidden. It returns nil
// if the object is too large or cannot be packed.
func (r *Recorder) shownJSON(kind kinds.Kind, js []byte) []byte {
	if len(js) == 0 || len(js) > maxStateBytes {
		return nil
	}
	var t transcode.Transcoder
	t.OmitManagedFields = true
	packed, ok := t.Append(nil, js)
	if !ok {
		return nil
	}
	return r.shownObject(kind.Group, kind.Kind, slices.Clip(packed))
}

// shownObject returns a packed object with the values of Secrets hidden, including values
// that the module has copied elsewhere. Different values remain distinguishable.
func (r *Recorder) shownObject(group, kind string, packed []byte) []byte {
	if len(packed) > maxStateBytes {
		return nil
	}
	if packed == nil || !redact.IsSecret(group, strings.TrimSuffix(kind, "List")) && !r.Secrets.Found(packed) {
		return packed
	}
	object, err := abi.DecodeObject(packed)
	if err != nil {
		return nil
	}
	hidden, err := abi.AppendValue(nil, r.Secrets.DistinctAny(redact.Distinct(group, kind, object)))
	if err != nil {
		return nil
	}
	return hidden
}
