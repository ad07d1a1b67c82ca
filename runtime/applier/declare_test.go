// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

func declares(d abi.Declared, e *abi.ResultError) func(context.Context, *abi.Request) (abi.Result, error) {
	return func(context.Context, *abi.Request) (abi.Result, error) {
		return abi.Result{Declared: &d, Error: e, Action: abi.Action{Requeue: true, After: time.Hour}}, nil
	}
}

// What a result declares is applied after the run; if that fails, the run has failed, with the class of the cluster's
// error.
func TestDeclare_OutcomeOfARun(t *testing.T) {
	whole := abi.Declared{Apply: [][]byte{{0x80}, {0x80}}, Prune: true, Status: []byte("s")}
	classed := func(class abi.ErrorClass) error {
		return &abi.ResultError{Class: class, Reason: "FieldConflict", Message: "kubectl owns .spec"}
	}
	backoff, hour := abi.Action{Requeue: true, After: DefaultBackoffInitial}, abi.Action{Requeue: true, After: time.Hour}
	minute := abi.Action{Requeue: true, After: time.Minute}
	for name, c := range map[string]struct {
		result func(context.Context, *abi.Request) (abi.Result, error)
		refuse error
		policy func(*abi.Failure) (abi.Result, error)
		log    []string
		action abi.Action
		by     Decider
		class  abi.ErrorClass // of the failure; "" for none
	}{
		"done":                                 {declares(whole, nil), nil, nil, []string{"reconcile", "declare 2 true false s"}, hour, DecidedByReconcile, ""},
		"nothing declared":                     {requeueAfter(time.Hour), nil, nil, []string{"reconcile"}, hour, DecidedByReconcile, ""},
		"transient":                            {declares(whole, nil), classed(abi.ErrorTransient), nil, []string{"reconcile", "declare 2 true false s"}, backoff, DecidedByBackoff, abi.ErrorTransient},
		"of no class":                          {declares(whole, nil), errAPI, nil, []string{"reconcile", "declare 2 true false s"}, backoff, DecidedByBackoff, abi.ErrorTransient},
		"error_policy":                         {declares(whole, nil), errAPI, policyReturns(minute), []string{"reconcile", "declare 2 true false s"}, minute, DecidedByErrorPolicy, abi.ErrorTransient},
		"permanent waits":                      {declares(whole, nil), classed(abi.ErrorPermanent), policyReturns(minute), []string{"reconcile", "declare 2 true false s"}, abi.Action{}, DecidedByError, abi.ErrorPermanent},
		"conflict: at once":                    {declares(whole, nil), classed(abi.ErrorConflict), policyReturns(minute), []string{"reconcile", "declare 2 true false s"}, abi.Action{Requeue: true, After: ConflictDelay}, DecidedByError, abi.ErrorConflict},
		"with an error only the status is":     {declares(whole, &abi.ResultError{Message: "no"}), nil, nil, []string{"reconcile", "declare 0 false false s"}, backoff, DecidedByBackoff, abi.ErrorTransient},
		"and the error counts":                 {declares(whole, &abi.ResultError{Class: abi.ErrorPermanent, Message: "no"}), classed(abi.ErrorPermanent), nil, []string{"reconcile", "declare 0 false false s"}, abi.Action{}, DecidedByError, abi.ErrorPermanent},
		"but the status has to be there":       {declares(whole, &abi.ResultError{Class: abi.ErrorPermanent, Message: "no"}), errAPI, nil, []string{"reconcile", "declare 0 false false s"}, backoff, DecidedByBackoff, abi.ErrorTransient},
		"be it after a conflict":               {declares(whole, &abi.ResultError{Class: abi.ErrorPermanent, Message: "no"}), classed(abi.ErrorConflict), nil, []string{"reconcile", "declare 0 false false s"}, abi.Action{Requeue: true, After: ConflictDelay}, DecidedByError, abi.ErrorConflict},
		"with an error and no status: nothing": {declares(abi.Declared{Prune: true}, &abi.ResultError{Message: "no"}), nil, nil, []string{"reconcile"}, backoff, DecidedByBackoff, abi.ErrorTransient},
	} {
		t.Run(name, func(t *testing.T) {
			cl := &cluster{t: t, finalizers: []any{finalizerName}, refuse: map[string]error{"declare": c.refuse}}
			s := &script{reconcile: c.result, policy: c.policy}
			out := newApplier(t, s, cl.on(s)).Apply(t.Context(), testKey, testReason, time.Time{})
			if diff := cmp.Diff(c.log, cl.log); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if out.Action != c.action || out.DecidedBy != c.by || out.Failed() != (c.class != "") {
				t.Errorf("%+v", out)
			}
			if c.class != "" && (len(s.failures) != 1 || s.failures[0].Error.Class != c.class || s.failures[0].Kind != abi.FailureError) {
				t.Errorf("policy calls: %+v", s.failures)
			}
			if c.refuse != nil && c.class != "" && !strings.Contains(out.Err.Error(), c.refuse.Error()) {
				t.Errorf("%v does not say %v", out.Err, c.refuse)
			}
		})
	}
}

// What finalize declares is applied before the finalizer is removed; if that fails, the finalizer remains.
func TestDeclare_AfterFinalize(t *testing.T) {
	for name, c := range map[string]struct {
		refuse error
		log    []string
	}{
		"applied": {nil, []string{"finalize", "declare 0 true false ", "remove " + finalizerName}},
		"not":     {errAPI, []string{"finalize", "declare 0 true false "}},
	} {
		t.Run(name, func(t *testing.T) {
			cl := &cluster{t: t, deleting: true, finalizers: []any{finalizerName}, refuse: map[string]error{"declare": c.refuse}}
			s := &script{reconcile: func(context.Context, *abi.Request) (abi.Result, error) {
				return abi.Result{Declared: &abi.Declared{Prune: true}}, nil
			}}
			out := newApplier(t, s, cl.on(s)).Apply(t.Context(), testKey, testReason, time.Time{})
			if diff := cmp.Diff(c.log, cl.log); diff != "" || !errors.Is(out.Err, c.refuse) || !out.Finalize {
				t.Errorf("%+v; requests (-want +got):\n%s", out, diff)
			}
		})
	}
}

// A result that cannot be applied without a cluster is a permanent error.
func TestDeclare_WithoutClusterOrObjectIsPermanent(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no cluster": func(*Config) {},
		"no object": func(c *Config) {
			c.Cluster, c.Deletes, c.Lookup = &cluster{t: t}, true, func(abi.Key) Object { return nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{reconcile: declares(abi.Declared{Prune: true}, nil), policy: policyReturns(abi.Action{Requeue: true})}
			a := newApplier(t, s, change)
			out := a.Apply(t.Context(), testKey, testReason, time.Time{})
			e, ok := errors.AsType[*abi.ResultError](out.Err)
			if !ok || e.Class != abi.ErrorPermanent || out.Action.Requeue || !strings.Contains(e.Message, "apply, prune, status") {
				t.Errorf("%+v", out)
			}
			if name == "no object" && a.Stats().Failing != 0 {
				t.Error("an object that is gone and not asked for again is kept in the table")
			}
		})
	}
}

// An API server that does not respond ends the step, but does not block the worker.
func TestDeclare_IsBoundedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := &cluster{t: t}
		s := &script{reconcile: declares(abi.Declared{Prune: true}, nil)}
		a := newApplier(t, s, func(c *Config) { c.Cluster, c.Lookup = hanging{cl}, cl.lookup })
		out := a.Apply(t.Context(), testKey, testReason, time.Time{})
		if !errors.Is(out.Err, context.DeadlineExceeded) || !out.Failed() || out.Duration != DefaultClusterTimeout {
			t.Errorf("%+v", out)
		}
	})
}

type hanging struct{ *cluster }

func (hanging) Declare(ctx context.Context, _ Owner, _ *abi.Declared) error {
	<-ctx.Done()
	return ctx.Err()
}

// A conflict is retried at once regardless of error_policy, but only three times in a row; then it is treated like any
// other error. Another error in between, or a success, begins a new sequence.
func TestApply_ConflictsAreRetriedAtOnceABoundedTime(t *testing.T) {
	next := abi.ErrorConflict
	after := time.Duration(0)
	minute := abi.Action{Requeue: true, After: time.Minute}
	s := &script{policy: policyReturns(minute)}
	s.reconcile = func(context.Context, *abi.Request) (abi.Result, error) {
		if next == "" {
			return abi.Result{}, nil
		}
		return abi.Result{Error: &abi.ResultError{Class: next, Message: "no", After: after}}, nil
	}
	a := newApplier(t, s)
	var got []string
	for _, class := range []abi.ErrorClass{
		abi.ErrorConflict, abi.ErrorConflict, abi.ErrorConflict, abi.ErrorConflict, abi.ErrorConflict,
		abi.ErrorTransient, abi.ErrorConflict, "", abi.ErrorConflict,
	} {
		next = class
		out := a.Apply(t.Context(), testKey, testReason, time.Time{})
		got = append(got, out.Action.String())
	}
	at, min := "requeue after 10ms", "requeue after 1m0s"
	if diff := cmp.Diff([]string{at, at, at, min, min, min, at, "await change", at}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(s.failures) != 8 {
		t.Errorf("error_policy was called %d times, want once per failed run", len(s.failures))
	}
	// A conflict with an explicit retry time is treated like any other error.
	after = time.Second
	if out := a.Apply(t.Context(), testKey, testReason, time.Time{}); out.Action != minute {
		t.Errorf("%+v", out.Action)
	}
}
