package guesttest

import (
	"errors"
	"strconv"
	"time"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/entry"
	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Result is how a run ended.
type Result struct {
	// Action is what comes next: of a failed run what the host makes of the
	// error and of ErrorPolicy's answer.
	Action wasmctl.Action
	// Failure is not nil if the run failed.
	Failure *wasmctl.Failure
	// BackOff reports that the run failed and neither the error nor ErrorPolicy
	// says when to try again: the host's back-off does.
	BackOff bool
}

// series is the failed runs in a row of one object.
type series struct {
	attempts int
	since    time.Time
}

// Reconcile runs the reconciler once for the object, as a host does after a
// change, and ErrorPolicy if the run fails. If the object does not exist it
// runs only if the manifest's For asks for Deletes; else the test fails.
func (h *Host) Reconcile(r wasmctl.Reconciler, ref wasmctl.ObjectRef) Result {
	h.t.Helper()
	obj := h.Get(ref)
	if !obj.Exists() && (r.Manifest.For == nil || !r.Manifest.For.Deletes) {
		h.t.Fatalf("guesttest: %v: is not in the cluster, so a host would not reconcile it", ref)
	}
	h.manifest = r.Manifest
	if h.failed[ref] == nil {
		h.failed[ref] = &series{}
	}
	runs := h.failed[ref]
	runs.attempts++
	action, failure := h.enter(r, entry.Reconcile, h.request(ref, obj, runs))
	if failure == nil {
		delete(h.failed, ref)
		return Result{Action: action}
	}
	if runs.attempts == 1 {
		runs.since = h.now
	}
	failure.Attempt, failure.FirstFailed = runs.attempts, runs.since
	return h.decide(r, failure, h.failure(ref, obj, failure))
}

// decide says what follows a failed run, as the host does: ErrorPolicy is asked
// once, but a permanent error waits for a change whatever it says; the error's
// own time counts where there is no policy.
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

// Manifest returns what the host reads of the reconciler: its manifest with what
// the SDK adds.
func Manifest(r wasmctl.Reconciler) (wasmctl.Value, error) {
	b := entry.Describe(r)
	if err := wire.Check(b); err != nil {
		return wasmctl.Value{}, err
	}
	v, err := wire.Decode(b)
	if err != nil {
		return wasmctl.Value{}, err
	}
	return wasmctl.NewValue(v)
}

// enter makes one entry call and reads its result as strictly as a host does.
func (h *Host) enter(r wasmctl.Reconciler, name string, msg map[string]any) (wasmctl.Action, *wasmctl.Failure) {
	h.t.Helper()
	b, err := wire.Append(nil, msg)
	if err != nil {
		h.t.Fatalf("guesttest: %s: %v", name, err)
	}
	out := entry.Call(functions{h}, r, name, b)
	action, failure, err := decodeResult(out)
	if err != nil {
		h.t.Fatalf("guesttest: %s: result %x: %v", name, out, err)
	}
	return action, failure
}

func (h *Host) request(ref wasmctl.ObjectRef, obj wasmctl.Object, runs *series) map[string]any {
	reason := wasmctl.ReasonObjectUpdated
	if runs.attempts > 1 {
		reason = wasmctl.ReasonRetry
	}
	msg := map[string]any{
		"v": 1, "id": "run-" + strconv.Itoa(len(h.calls)), "controller": h.manifest.Name,
		"reason": map[string]any{"type": string(reason)}, "attempt": runs.attempts,
		"key": key(ref), "config_gen": 1, "deadline_ms": 0, "dry_run": h.DryRun, "caps": ops,
	}
	if obj.Exists() {
		msg["object"] = obj
	}
	return msg
}

func (h *Host) failure(ref wasmctl.ObjectRef, obj wasmctl.Object, f *wasmctl.Failure) map[string]any {
	msg := map[string]any{
		"v": 1, "id": "run-" + strconv.Itoa(len(h.calls)), "key": key(ref), "kind": string(f.Kind), "attempt": f.Attempt,
		"first_failed_ms": f.FirstFailed.UnixMilli(),
		"error": map[string]any{
			"class": string(f.Class), "message": f.Message, "reason": f.Reason, "after_ms": f.After.Milliseconds(),
		},
	}
	if obj.Exists() {
		msg["object"] = obj
	}
	return msg
}

func key(ref wasmctl.ObjectRef) map[string]any {
	k := map[string]any{"name": ref.Name}
	if ref.Namespace != "" {
		k["namespace"] = ref.Namespace
	}
	return k
}

// decodeResult reads a Result (abi/ABI.md, section 4).
func decodeResult(b []byte) (wasmctl.Action, *wasmctl.Failure, error) {
	await := wasmctl.AwaitChange()
	if len(b) == 0 {
		return await, nil, nil
	}
	val, err := wire.Decode(b)
	if err != nil {
		return await, nil, err
	}
	msg, ok := val.(map[string]any)
	if !ok {
		return await, nil, errors.New("is not a map")
	}
	if e, ok := msg["error"].(map[string]any); ok {
		after, _ := e["after_ms"].(int64)
		return await, &wasmctl.Failure{
			Kind: wasmctl.FailureError, Class: wasmctl.ErrorClass(str(e, "class")), Message: str(e, "message"),
			Reason: str(e, "reason"), After: time.Duration(after) * time.Millisecond,
		}, nil
	}
	switch after, _ := msg["after_ms"].(int64); {
	case after < 0:
		return await, nil, errors.New("after_ms is negative")
	case str(msg, "action") == "requeue":
		return wasmctl.Requeue(time.Duration(after) * time.Millisecond), nil, nil
	case str(msg, "action") == "await":
		return await, nil, nil
	}
	return await, nil, errors.New("unknown action")
}
