// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// request returns a request for the object, which is nil if it is gone.
func request(obj object) *abi.Request {
	r := &abi.Request{ID: "validate", Controller: "validate", Attempt: 1, Reason: abi.Reason{Type: abi.ReasonListed}, Key: key}
	if obj != nil {
		r.Object = encode(obj)
	}
	return r
}

// run makes the module reconcile or finalize, and returns its operations.
func (e *exam) run(ctx context.Context, entry string, req *abi.Request) (abi.Result, []string, error) {
	guest, release, err := e.module.Acquire(ctx)
	if err != nil {
		return abi.Result{}, nil, err
	}
	defer release()
	e.world.take()
	call := guest.Reconcile
	if entry == abi.ExportFinalize {
		call = guest.Finalize
	}
	res, err := call(ctx, req)
	e.world.use(declaredNeeds(res.Declared)...)
	return res, e.world.take(), err
}

// try checks one run.
func (e *exam) try(ctx context.Context, id, entry string, req *abi.Request) {
	res, asked, err := e.run(ctx, entry, req)
	if err == nil {
		err = checkChildren(res.Declared)
	}
	if err != nil {
		e.add(id, Fail, oneLine(err), nextOf(err))
		return
	}
	e.ok(id, "%s", outcome(res, asked))
}

// objects passes objects of its kind to the module.
func (e *exam) objects(ctx context.Context) {
	e.try(ctx, "reconcile.empty", abi.ExportReconcile, request(e.bare()))
	e.sample(ctx)
	e.try(ctx, "reconcile.large", abi.ExportReconcile, request(e.padded(1<<20)))
	e.try(ctx, "reconcile.unicode", abi.ExportReconcile, request(e.inUnicode()))
	res, asked, err := e.run(ctx, abi.ExportReconcile, request(e.ofOtherTypes()))
	if err != nil {
		e.add("reconcile.types", Warn, "with values of other types: "+oneLine(err), "a schema in the CRD keeps such objects away, if it has one; "+nextOf(err))
		return
	}
	e.ok("reconcile.types", "with values of other types: %s", outcome(res, asked))
}

// sample passes the user's object, if any, to the module. A failed run may be what the user wants,
// but usually is not.
func (e *exam) sample(ctx context.Context) {
	const id = "reconcile.minimal"
	if res, asked, err := e.run(ctx, abi.ExportReconcile, request(e.kind.sample)); err == nil && res.Error != nil && len(e.opts.Objects) > 0 {
		e.add(id, Warn, "with your object: "+outcome(res, asked), "this error limits the checks below: fix the object or the module; settings are passed with --config")
		return
	}
	e.try(ctx, id, abi.ExportReconcile, request(e.kind.sample))
}

// checkChildren returns the host's reason to refuse a declared result.
func checkChildren(d *abi.Declared) error {
	if d == nil {
		return nil
	}
	seen := map[string]int{}
	for i, b := range d.Apply {
		child, err := abi.DecodeObject(b)
		if err != nil {
			return fmt.Errorf("result: apply[%d]: %w", i, err)
		}
		meta, _ := child["metadata"].(object)
		apiVersion, _ := child["apiVersion"].(string)
		kind, _ := child["kind"].(string)
		name, _ := meta["name"].(string)
		switch {
		case apiVersion == "" || kind == "" || name == "":
			return fmt.Errorf("result: apply[%d]: a child needs apiVersion, kind and metadata.name, and has %q, %q and %q", i, apiVersion, kind, name)
		case meta["generateName"] != nil:
			return fmt.Errorf("result: apply[%d]: generateName is refused: name the child", i)
		}
		id := strings.Join([]string{apiVersion, kind, fmt.Sprint(meta["namespace"]), name}, " ")
		if before, twice := seen[id]; twice {
			return fmt.Errorf("result: apply[%d] and apply[%d] are the same %s %s", before, i, kind, name)
		}
		seen[id] = i
	}
	return nil
}

// absent calls a module that requests deleted objects.
func (e *exam) absent(ctx context.Context) {
	if f := e.module.Manifest().For; f != nil && f.Deletes {
		e.try(ctx, "reconcile.deleted", abi.ExportReconcile, request(nil))
	}
}

func (e *exam) finalize(ctx context.Context) {
	if !e.module.Finalizes() {
		return
	}
	obj := e.with(object{"deletionTimestamp": "2026-01-02T00:00:00Z", "deletionGracePeriodSeconds": int64(0), "finalizers": []any{e.module.Manifest().Finalizer}})
	e.try(ctx, "finalize", abi.ExportFinalize, request(obj))
	res, _, err := e.run(ctx, abi.ExportFinalize, request(obj))
	if err == nil && res.Error != nil {
		e.add("finalize.again", Warn, "without children to clean up: "+clip(res.Error.Error()), "finalize can be called again after success: treat missing children as deleted, or the object is never removed")
		return
	}
	if err == nil {
		e.ok("finalize.again", "succeeds without children to clean up")
	}
}

// buffer passes requests of many sizes. Their results do not matter here.
func (e *exam) buffer(ctx context.Context) {
	for _, n := range []int{0, 1 << 12, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1 << 20, abi.MaxBytes, 0, 1 << 21} {
		_, _, err := e.module.Exchange(ctx, abi.ExportReconcile, e.message(n))
		if errors.Is(err, abi.ErrBuffer) {
			e.add("buffer", Fail, oneLine(err), "buffer must return a block of the size that it is asked for, 8-byte aligned and inside memory, up to 4 MiB; it may grow memory")
			return
		}
	}
	e.ok("buffer", "takes requests of all sizes up to %s", size(abi.MaxBytes))
}

// message returns a request of n bytes, or of the size without padding if that is larger.
func (e *exam) message(n int) []byte {
	msg := abi.AppendRequest(nil, request(e.padded(0)))
	for pad := 0; len(msg) < n; {
		pad += n - len(msg)
		longer := abi.AppendRequest(nil, request(e.padded(pad)))
		if len(longer) > n { // the head of the text has become longer
			pad -= len(longer) - n
			return abi.AppendRequest(nil, request(e.padded(pad)))
		}
		msg = longer
	}
	return msg
}

// errorPolicy passes failures of all kinds to a module with error_policy.
func (e *exam) errorPolicy(ctx context.Context) {
	if !e.module.HasHook(abi.ExportErrorPolicy) {
		e.ok("error_policy", "none: the host's back-off decides")
		return
	}
	answers := map[string]bool{}
	for _, kind := range []abi.FailureKind{abi.FailureError, abi.FailureTrap, abi.FailureTimeout, abi.FailureMemory, abi.FailureOutput} {
		for _, obj := range []object{e.kind.sample, nil} {
			res, err := e.askPolicy(ctx, kind, obj)
			if err != nil {
				e.add("error_policy", Fail, fmt.Sprintf("for a failure of kind %s: %s", kind, oneLine(err)), "it is called for every kind of failure, possibly without an object: answer await or requeue; "+nextOf(err))
				return
			}
			if res.Error != nil {
				e.add("error_policy", Warn, fmt.Sprintf("of a failure of kind %s: an error: %s", kind, clip(res.Error.Error())), "an error of error_policy leaves the decision to the host's back-off: answer await or requeue")
				return
			}
			answers[res.Action.String()] = true
		}
	}
	e.ok("error_policy", "answers %s", joined(answers))
}

func (e *exam) askPolicy(ctx context.Context, kind abi.FailureKind, obj object) (abi.Result, error) {
	guest, release, err := e.module.Acquire(ctx)
	if err != nil {
		return abi.Result{}, err
	}
	defer release()
	f := &abi.Failure{
		ID: "validate", Key: key, Kind: kind, Attempt: 1, FirstFailed: time.UnixMilli(1767225600000),
		Error: abi.ResultError{Class: abi.ErrorTransient, Message: "made up by wasmctl validate", Reason: "Validate"},
	}
	if obj != nil {
		f.Object = encode(obj)
	}
	return guest.ErrorPolicy(ctx, f)
}
