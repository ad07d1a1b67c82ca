// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// script is a module with a single guest whose results come from functions; it counts acquired and released guests.
type script struct {
	reconcile func(ctx context.Context, req *abi.Request) (abi.Result, error)
	policy    func(f *abi.Failure) (abi.Result, error)
	acquire   error

	acquired, released int
	finalizing         bool
	requests           []abi.Request
	failures           []abi.Failure
}

func (s *script) Acquire(context.Context) (abi.Guest, func(), error) {
	if s.acquire != nil {
		return nil, nil, s.acquire
	}
	s.acquired++
	return s, func() { s.released++ }, nil
}

func (s *script) Revision() uint64 { return 7 }
func (s *script) Fuel() int64      { return int64(100*len(s.requests) + len(s.failures)) }

func (s *script) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	s.requests = append(s.requests, *req)
	return s.reconcile(ctx, req)
}

func (s *script) Finalize(ctx context.Context, req *abi.Request) (abi.Result, error) {
	s.finalizing = true
	defer func() { s.finalizing = false }()
	return s.Reconcile(ctx, req)
}

func (s *script) ErrorPolicy(_ context.Context, f *abi.Failure) (abi.Result, error) {
	s.failures = append(s.failures, *f)
	if s.policy == nil {
		return abi.Result{}, abi.ErrNoErrorPolicy
	}
	return s.policy(f)
}

var (
	testKey    = abi.Key{Namespace: "default", Name: "web"}
	testReason = queue.Reasons{
		First: abi.Reason{Type: abi.ReasonObjectUpdated}, Dropped: 2,
		More: []abi.Reason{{Type: abi.ReasonRelated, Resource: "pods", Ref: abi.Key{Name: "a"}}},
	}
	await = func(context.Context, *abi.Request) (abi.Result, error) { return abi.Result{}, nil }
)

func failWith(e abi.ResultError) func(context.Context, *abi.Request) (abi.Result, error) {
	return func(context.Context, *abi.Request) (abi.Result, error) { return abi.Result{Error: &e}, nil }
}

func policyReturns(a abi.Action) func(*abi.Failure) (abi.Result, error) {
	return func(*abi.Failure) (abi.Result, error) { return abi.Result{Action: a}, nil }
}

func newApplier(t *testing.T, s *script, change ...func(*Config)) *Applier {
	t.Helper()
	cfg := Config{
		Controller: "test", Module: s, Backoff: Backoff{Jitter: -1},
		Lookup: func(abi.Key) Object { return raw{0x80} },
	}
	for _, c := range change {
		c(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.acquired != s.released {
			t.Errorf("acquired %d guests, released %d", s.acquired, s.released)
		}
	})
	return a
}

func TestApply_SuccessFollowsTheGuestsAction(t *testing.T) {
	requeue := abi.Action{Requeue: true, After: time.Hour}
	s := &script{reconcile: func(context.Context, *abi.Request) (abi.Result, error) { return abi.Result{Action: requeue}, nil }}
	out := newApplier(t, s).Apply(t.Context(), testKey, testReason, time.Time{})
	if out.Err != nil || out.Failed() || out.Action != requeue || out.DecidedBy != DecidedByReconcile || out.Revision != 7 || out.Attempt != 1 {
		t.Errorf("%+v", out)
	}
	want := []abi.Request{{
		ID: out.ID, Controller: "test", Attempt: 1, Key: testKey, Object: []byte{0x80},
		Reason: testReason.First, More: testReason.More, Dropped: testReason.Dropped,
	}}
	if diff := cmp.Diff(want, s.requests); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if len(s.failures) != 0 {
		t.Error("error_policy was called for a success")
	}
}

// Rule 20: an object that is gone is not reconciled, which is not a failure.
func TestApply_GoneObjectIsNotReconciled(t *testing.T) {
	s := &script{reconcile: await}
	gone := func(c *Config) { c.Lookup = func(abi.Key) Object { return nil } }
	out := newApplier(t, s, gone).Apply(t.Context(), testKey, testReason, time.Time{})
	if !errors.Is(out.Err, ErrObjectNotFound) || out.Failed() || out.Action.Requeue || s.acquired != 0 || len(s.failures) != 0 {
		t.Errorf("%+v, acquired %d, policy %d", out, s.acquired, len(s.failures))
	}
}

// Rule 20: a module that requests deletes is called with the key and no object.
func TestApply_DeletesAreReconciledOnRequest(t *testing.T) {
	s := &script{reconcile: await}
	gone := func(c *Config) {
		c.Lookup = func(abi.Key) Object { return nil }
		c.Deletes = true
	}
	out := newApplier(t, s, gone).Apply(t.Context(), testKey, testReason, time.Time{})
	if out.Err != nil || len(s.requests) != 1 || s.requests[0].Object != nil || s.requests[0].Key != testKey {
		t.Errorf("%+v, %+v", out, s.requests)
	}
}

// Rule 18: attempts count runs; success resets them, and so does the end of the object; a requeue after success is not
// a retry.
func TestApply_AttemptsCountFailedRunsInARow(t *testing.T) {
	fails, found := true, true
	s := &script{}
	s.reconcile = func(ctx context.Context, req *abi.Request) (abi.Result, error) {
		if fails {
			return abi.Result{Error: &abi.ResultError{Message: "no"}}, nil
		}
		return abi.Result{Action: abi.Action{Requeue: true}}, nil
	}
	a := newApplier(t, s, func(c *Config) { c.Lookup = func(abi.Key) Object { return rawIf(found, []byte{0x80}) } })
	attempt := func() int { return a.Apply(t.Context(), testKey, testReason, time.Time{}).Attempt }
	got := []int{attempt(), attempt(), attempt()}
	fails = false
	got = append(got, attempt(), attempt(), attempt())
	fails = true
	got = append(got, attempt(), attempt())
	found = false
	got = append(got, attempt())
	found = true
	got = append(got, attempt())
	if diff := cmp.Diff([]int{1, 2, 3, 4, 1, 1, 1, 2, 0, 1}, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if len(a.failures.byKey) != 1 {
		t.Errorf("%d objects in the table, want the one that fails", len(a.failures.byKey))
	}
}

// Rule 19: error_policy is called once per failed run, with the object as seen by the run.
func TestApply_ErrorPolicySeesTheFailedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := abi.Action{Requeue: true, After: time.Minute}
		s := &script{policy: policyReturns(want), reconcile: failWith(abi.ResultError{Class: abi.ErrorTransient, Message: "no", Reason: "Busy"})}
		a := newApplier(t, s)
		first := time.Now()
		a.Apply(t.Context(), testKey, testReason, time.Time{})
		time.Sleep(time.Hour)
		out := a.Apply(t.Context(), testKey, testReason, time.Time{})
		if out.Action != want || out.DecidedBy != DecidedByErrorPolicy || !out.Failed() {
			t.Errorf("%+v", out)
		}
		failure := abi.Failure{
			ID: out.ID, Key: testKey, Object: []byte{0x80}, Kind: abi.FailureError, Attempt: 2, FirstFailed: first,
			Error: abi.ResultError{Class: abi.ErrorTransient, Message: "no", Reason: "Busy"},
		}
		if diff := cmp.Diff(failure, s.failures[1]); diff != "" || len(s.failures) != 2 {
			t.Errorf("%d failures; the second (-want +got):\n%s", len(s.failures), diff)
		}
	})
}

// Rules 17, 18 and 19: what decides the action after a failure.
func TestApply_WhoDecidesAfterAFailure(t *testing.T) {
	trap := &abi.CallError{Kind: abi.FailureTrap, Func: "reconcile", Err: errors.New("unreachable"), Output: "panic: nil map"}
	policyFails := func(*abi.Failure) (abi.Result, error) {
		return abi.Result{Error: &abi.ResultError{Message: "policy fails too"}}, nil
	}
	policyTraps := func(*abi.Failure) (abi.Result, error) { return abi.Result{}, trap }
	minute, second := abi.Action{Requeue: true, After: time.Minute}, abi.Action{Requeue: true, After: time.Second}
	backoff := abi.Action{Requeue: true, After: DefaultBackoffInitial}
	for name, c := range map[string]struct {
		script script
		want   abi.Action
		by     Decider
		kind   abi.FailureKind
	}{
		"policy":                          {script{reconcile: failWith(abi.ResultError{}), policy: policyReturns(minute)}, minute, DecidedByErrorPolicy, abi.FailureError},
		"no policy: the back-off":         {script{reconcile: failWith(abi.ResultError{})}, backoff, DecidedByBackoff, abi.FailureError},
		"no policy: the error's own time": {script{reconcile: failWith(abi.ResultError{After: time.Second})}, second, DecidedByError, abi.FailureError},
		"a policy that fails":             {script{reconcile: failWith(abi.ResultError{}), policy: policyFails}, backoff, DecidedByBackoff, abi.FailureError},
		"a policy that traps":             {script{reconcile: failWith(abi.ResultError{}), policy: policyTraps}, backoff, DecidedByBackoff, abi.FailureError},
		"permanent waits for a change":    {script{reconcile: failWith(abi.ResultError{Class: abi.ErrorPermanent}), policy: policyReturns(minute)}, abi.Action{}, DecidedByError, abi.FailureError},
		"an error beats a requeue": {script{reconcile: func(context.Context, *abi.Request) (abi.Result, error) {
			return abi.Result{Action: second, Error: &abi.ResultError{Message: "no"}}, nil
		}}, backoff, DecidedByBackoff, abi.FailureError},
		"a trap is a failure like another": {script{reconcile: func(context.Context, *abi.Request) (abi.Result, error) { return abi.Result{}, trap }, policy: policyReturns(minute)}, minute, DecidedByErrorPolicy, abi.FailureTrap},
	} {
		t.Run(name, func(t *testing.T) {
			out := newApplier(t, &c.script).Apply(t.Context(), testKey, testReason, time.Time{})
			if out.Action != c.want || out.DecidedBy != c.by || !out.Failed() {
				t.Errorf("%+v", out)
			}
			if len(c.script.failures) != 1 || c.script.failures[0].Kind != c.kind {
				t.Errorf("policy calls: %+v", c.script.failures)
			}
		})
	}
}

// Rule 17: failed runs are counted by kind; a successful run, an object that is gone and an interrupted run are not
// counted.
func TestApply_FailuresAreCountedByKind(t *testing.T) {
	next := abi.FailureError
	s := &script{reconcile: func(context.Context, *abi.Request) (abi.Result, error) {
		return abi.Result{}, &abi.CallError{Kind: next, Err: errors.New("no")}
	}}
	a := newApplier(t, s)
	want := map[abi.FailureKind]uint64{}
	for i, kind := range kinds {
		next, want[kind] = kind, uint64(i)
		for range i {
			a.Apply(t.Context(), testKey, testReason, time.Time{})
		}
	}
	s.reconcile = await
	a.Apply(t.Context(), testKey, testReason, time.Time{})
	if diff := cmp.Diff(want, a.Failures()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestApply_NoGuestIsAFailureWithBackoff(t *testing.T) {
	s := &script{acquire: errors.New("out of memory")}
	a := newApplier(t, s)
	a.Apply(t.Context(), testKey, testReason, time.Time{})
	out := a.Apply(t.Context(), testKey, testReason, time.Time{})
	if !out.Failed() || out.Attempt != 2 || out.Action.After != 2*DefaultBackoffInitial || !strings.Contains(out.Err.Error(), "acquire an instance: out of memory") {
		t.Errorf("%+v", out)
	}
}

// Rule 9: a run that is interrupted by a stop is not a failure of its object.
func TestApply_InterruptedRunIsNotAFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &script{policy: policyReturns(abi.Action{Requeue: true})}
	s.reconcile = func(context.Context, *abi.Request) (abi.Result, error) {
		cancel()
		return abi.Result{}, &abi.CallError{Kind: abi.FailureTimeout, Func: "reconcile", Err: context.Canceled}
	}
	a := newApplier(t, s)
	out := a.Apply(ctx, testKey, testReason, time.Time{})
	if !errors.Is(out.Err, ErrInterrupted) || out.Failed() || len(s.failures) != 0 || len(a.failures.byKey) != 0 {
		t.Errorf("%+v, policy %d", out, len(s.failures))
	}
}

// Rule 19: 250 ms doubling to 5 minutes, jittered.
func TestBackoff_DoublesUpToItsMaximum(t *testing.T) {
	plain := Backoff{Jitter: -1}
	for attempt, want := range map[int]time.Duration{
		0: 250 * time.Millisecond, 1: 250 * time.Millisecond, 2: 500 * time.Millisecond, 3: time.Second, 11: 256 * time.Second, 12: 5 * time.Minute, 1 << 30: 5 * time.Minute,
	} {
		if got := plain.Delay(attempt, 0.5); got != want {
			t.Errorf("attempt %d: %v, want %v", attempt, got, want)
		}
	}
	var b Backoff
	if low, high := b.Delay(3, 0), b.Delay(3, 0.999999); low != 800*time.Millisecond || high < 1190*time.Millisecond || high > 1200*time.Millisecond {
		t.Errorf("jitter: %v to %v, want 0.8 s to 1.2 s", low, high)
	}
	if _, err := New(Config{Controller: "c", Module: &script{}, Lookup: func(abi.Key) Object { return nil }, Backoff: Backoff{Initial: -1}}); err == nil {
		t.Error("a negative back-off was accepted")
	}
}

// ofRevision is the error of a revision that failed to provide a guest.
type ofRevision struct{ error }

func (ofRevision) Revision() uint64 { return 3 }

// A run for which its revision had no guest belongs to that revision, so that its probation counts the run.
func TestApply_RunWithoutAGuestIsOfItsRevision(t *testing.T) {
	s := &script{acquire: fmt.Errorf("module: %w", ofRevision{&abi.CallError{Kind: abi.FailureTrap, Err: errors.New("start")}})}
	out := newApplier(t, s).Apply(t.Context(), testKey, testReason, time.Time{})
	if !out.Failed() || out.Revision != 3 {
		t.Errorf("%+v", out)
	}
	s.acquire = errors.New("nobody's")
	if out = newApplier(t, s).Apply(t.Context(), testKey, testReason, time.Time{}); !out.Failed() || out.Revision != 0 {
		t.Errorf("%+v", out)
	}
}
