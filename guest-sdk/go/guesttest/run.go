// SPDX-License-Identifier: Apache-2.0

package guesttest

import (
	"slices"
	"strconv"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/entry"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Result is the outcome of a run.
type Result struct {
	// Action is the next step. After a failed run, it is the host's decision,
	// from the error and the answer of ErrorPolicy.
	Action wasmctl.Action
	// Failure is not nil if the run failed.
	Failure *wasmctl.Failure
	// BackOff reports whether the run failed and the host's back-off sets the
	// time of the retry, because neither the error nor ErrorPolicy does.
	BackOff bool
}

// series counts the consecutive failed runs of one object.
type series struct {
	attempts int
	since    time.Time
}

// Reconcile runs the reconciler once for the object, as a host does after a
// change. It calls Finalize instead of Reconcile for an object that is being
// deleted and has the manifest's finalizer. It calls ErrorPolicy if the run
// fails. It adds the finalizer before the run, removes it after the cleanup,
// and applies the declared result.
//
// If the object does not exist, the reconciler runs only if the manifest's For
// sets Deletes. Otherwise the test fails.
func (h *Host) Reconcile(r wasmctl.Reconciler, ref wasmctl.ObjectRef) Result {
	h.t.Helper()
	h.manifest = r.Manifest
	if h.Get(ref).Exists() {
		h.addFinalizer(ref)
	} else if r.Manifest.For == nil || !r.Manifest.For.Deletes {
		h.t.Fatalf("guesttest: %v: not in the cluster, so a host would not reconcile it", ref)
	}
	obj := h.Get(ref)
	name := entry.Reconcile
	if r.Manifest.Finalizer != "" && obj.IsDeleting() {
		if !slices.Contains(obj.Strings("metadata", "finalizers"), r.Manifest.Finalizer) {
			return Result{} // already cleaned up; another finalizer still delays the deletion
		}
		name = entry.Finalize
	}
	h.running = &wasmctl.EventObject{ObjectRef: ref, UID: obj.UID()}
	defer func() { h.running = nil }()
	if h.failed[ref] == nil {
		h.failed[ref] = &series{}
	}
	runs := h.failed[ref]
	runs.attempts++
	action, failure := h.enter(r, name, h.request(ref, obj, runs))
	if failure == nil {
		delete(h.failed, ref)
		if _, again := action.Requeued(); name == entry.Finalize && !again {
			h.removeFinalizer(ref)
		}
		return Result{Action: action}
	}
	if runs.attempts == 1 {
		runs.since = h.now
	}
	failure.Attempt, failure.FirstFailed = runs.attempts, runs.since
	return h.decide(r, failure, h.failure(ref, obj, failure))
}

// addFinalizer adds the manifest's finalizer to an object that is not being
// deleted, as the host does before the first run (rule 21).
func (h *Host) addFinalizer(ref wasmctl.ObjectRef) {
	name := h.manifest.Finalizer
	old := h.store.objects[idOfRef(ref)]
	if name == "" || h.DryRun || str(old, "metadata", "deletionTimestamp") != "" || slices.Contains(finalizers(old), any(name)) {
		return
	}
	h.setFinalizers(ref, append(slices.Clone(finalizers(old)), any(name)))
}

func (h *Host) setFinalizers(ref wasmctl.ObjectRef, list []any) {
	old := h.store.objects[idOfRef(ref)]
	obj := clone(old)
	if metadata(obj)["finalizers"] = list; len(list) == 0 {
		delete(metadata(obj), "finalizers")
	}
	h.store.replace(idOfRef(ref), old, obj, h.now)
}

// removeFinalizer removes the finalizer after the cleanup. The object may be
// gone by then.
func (h *Host) removeFinalizer(ref wasmctl.ObjectRef) {
	if old, ok := h.store.objects[idOfRef(ref)]; ok && !h.DryRun {
		h.setFinalizers(ref, slices.DeleteFunc(slices.Clone(finalizers(old)), func(f any) bool { return f == any(h.manifest.Finalizer) }))
	}
}

// decide determines the step after a failed run, as the host does. It calls
// ErrorPolicy once. A permanent error waits for a change, whatever ErrorPolicy
// returns. The time of the error counts only if there is no ErrorPolicy.
func (h *Host) decide(r wasmctl.Reconciler, f *wasmctl.Failure, msg map[string]any) Result {
	h.t.Helper()
	result := Result{Failure: f, BackOff: r.ErrorPolicy == nil}
	if r.ErrorPolicy != nil {
		action, failed := h.enter(r, entry.ErrorPolicy, msg)
		if failed != nil {
			h.t.Fatalf("guesttest: error policy: %s", failed.Message)
		}
		result.Action = action
	}
	switch {
	case f.Class == wasmctl.ErrorPermanent:
		result.Action, result.BackOff = wasmctl.AwaitChange(), false
	case result.BackOff && f.After > 0:
		result.Action, result.BackOff = wasmctl.Requeue(f.After), false
	}
	return result
}

// Manifest returns the manifest of the reconciler in the form that the host
// receives, including the additions of the SDK.
func Manifest(r wasmctl.Reconciler) (wasmctl.Value, error) {
	v, err := wire.Decode(entry.Describe(r))
	if err != nil {
		return wasmctl.Value{}, err
	}
	return wasmctl.NewValue(v)
}

// enter makes one entry call, decodes its result as strictly as a host does,
// and carries out the declarations.
func (h *Host) enter(r wasmctl.Reconciler, name string, msg map[string]any) (wasmctl.Action, *wasmctl.Failure) {
	h.t.Helper()
	out := h.invoke(r, name, msg)
	action, d, failure, err := decodeResult(out)
	if err != nil {
		h.t.Fatalf("guesttest: %s: result %x: %v", name, out, err)
	}
	owner, ok := h.store.objects[idOfRef(h.running.ObjectRef)]
	if !ok {
		return action, failure
	}
	if undone := h.declare(owner, d); failure == nil {
		failure = undone
	}
	return action, failure
}

// invoke makes one entry call.
func (h *Host) invoke(r wasmctl.Reconciler, name string, msg map[string]any) []byte {
	h.t.Helper()
	if problem := entry.Problem(r); problem != "" {
		h.t.Fatalf("guesttest: the host would not load this: %s", problem)
	}
	b, err := wire.Append(nil, msg)
	if err != nil {
		h.t.Fatalf("guesttest: %s: %v", name, err)
	}
	h.entered = name
	defer func() { h.entered = "" }()
	return entry.Call(functions{h}, r, name, b)
}

func (h *Host) request(ref wasmctl.ObjectRef, obj wasmctl.Object, runs *series) map[string]any {
	reason := wasmctl.ReasonObjectUpdated
	if runs.attempts > 1 {
		reason = wasmctl.ReasonRetry
	}
	msg := map[string]any{
		"v": 1, "id": "run-" + strconv.Itoa(len(h.calls)), "controller": h.manifest.Name,
		"reason": map[string]any{"type": string(reason)}, "attempt": runs.attempts,
		"key": ref.Key(), "config_gen": h.configGen, "deadline_ms": 0, "dry_run": h.DryRun, "caps": caps,
	}
	return withObject(msg, "object", obj)
}

func (h *Host) failure(ref wasmctl.ObjectRef, obj wasmctl.Object, f *wasmctl.Failure) map[string]any {
	msg := map[string]any{
		"v": 1, "id": "run-" + strconv.Itoa(len(h.calls)), "key": ref.Key(), "kind": string(f.Kind), "attempt": f.Attempt,
		"first_failed_ms": f.FirstFailed.UnixMilli(),
		"error": map[string]any{
			"class": string(f.Class), "message": f.Message, "reason": f.Reason, "after_ms": f.After.Milliseconds(),
		},
	}
	return withObject(msg, "object", obj)
}

// withObject adds an object to a message, if there is one.
func withObject(msg map[string]any, key string, obj wasmctl.Object) map[string]any {
	if obj.Exists() {
		msg[key] = obj
	}
	return msg
}
