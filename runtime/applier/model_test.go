// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

// forEachSeed runs a test with several sources of random numbers; a failing seed is named, and can be run alone with
// -run.
func forEachSeed(t *testing.T, n int, f func(t *testing.T, rnd func(int) int)) {
	t.Helper()
	for seed := range n {
		ok := t.Run("seed"+strconv.Itoa(seed), func(t *testing.T) {
			f(t, rand.New(rand.NewPCG(uint64(seed), 7)).IntN)
		})
		if !ok {
			return
		}
	}
}

// model is a simple model of the applier's memory of one object.
type model struct {
	failed    int
	conflicts int
	first     time.Time
}

// modelRun is one random run: the responses of the guest and error_policy.
type modelRun struct {
	found, paused bool
	acquire       bool
	class         abi.ErrorClass // "" succeeds, "trap" traps
	after         time.Duration  // of the error
	action        abi.Action     // of a success
	policy        int            // 0 none, 1 responds, 2 fails
}

// expect is the specification: rules 18, 19 and 20.
func (m *model) expect(r modelRun, now time.Time) (out Outcome) {
	switch {
	case !r.found:
		*m = model{}
		return Outcome{Err: ErrObjectNotFound}
	case r.paused:
		return Outcome{Err: ErrPaused}
	}
	out.Attempt = m.failed + 1
	if r.acquire && r.class == "" {
		*m = model{}
		out.Action, out.DecidedBy, out.Revision = r.action, DecidedByReconcile, 7
		return out
	}
	if m.failed == 0 {
		m.first = now
	}
	m.failed++
	m.conflicts++
	if r.class != abi.ErrorConflict || !r.acquire {
		m.conflicts = 0
	}
	out.Action, out.DecidedBy = abi.Action{Requeue: true, After: Backoff{Jitter: -1}.Delay(out.Attempt, 0)}, DecidedByBackoff
	if !r.acquire {
		return out
	}
	out.Revision = 7
	ofError := r.class != "trap"
	switch {
	case r.class == abi.ErrorPermanent:
		out.Action, out.DecidedBy = abi.Action{}, DecidedByError
	case r.class == abi.ErrorConflict && m.conflicts <= 3 && r.after == 0:
		out.Action, out.DecidedBy = abi.Action{Requeue: true, After: 10 * time.Millisecond}, DecidedByError
	case r.policy == 1:
		out.Action, out.DecidedBy = abi.Action{Requeue: true, After: time.Hour}, DecidedByErrorPolicy
	case ofError && r.after > 0:
		out.Action, out.DecidedBy = abi.Action{Requeue: true, After: r.after}, DecidedByError
	}
	return out
}

// Rules 18, 19 and 20: random runs of several objects agree with a simple model, in virtual time.
func TestApply_RandomRunsAgainstTheModel(t *testing.T) {
	forEachSeed(t, 100, func(t *testing.T, rnd func(int) int) {
		synctest.Test(t, func(t *testing.T) {
			var r modelRun
			s := &script{reconcile: func(context.Context, *abi.Request) (abi.Result, error) { return r.reconcile() }}
			s.policy = func(*abi.Failure) (abi.Result, error) { return r.errorPolicy() }
			a := newApplier(t, s, func(c *Config) {
				c.Lookup = func(abi.Key) Object {
					if !r.found {
						return nil
					}
					cl := cluster{t: t}
					if r.paused {
						cl.paused = "true"
					}
					return raw(cl.object())
				}
			})
			models := map[abi.Key]*model{{Name: "a"}: {}, {Name: "b"}: {}, {Name: "a", Namespace: "b"}: {}}
			keys := []abi.Key{{Name: "a"}, {Name: "b"}, {Name: "a", Namespace: "b"}}
			for range 100 {
				r = randomRun(rnd)
				s.acquire = nil
				if !r.acquire {
					s.acquire = errors.New("no guest")
				}
				key := keys[rnd(len(keys))]
				time.Sleep(time.Duration(rnd(1000)) * time.Millisecond)
				got := a.Apply(t.Context(), key, testReason, time.Time{})
				before := models[key].failed
				want := models[key].expect(r, time.Now())
				if diff := cmp.Diff(want, summary(got), cmpopts); diff != "" || got.Failed() != (models[key].failed > before) {
					t.Fatalf("%+v of %s (-want +got):\n%s", r, key, diff)
				}
				if o := a.Object(key); o.FailedRuns != models[key].failed || o.FailedRuns > 0 && !o.FirstFailed.Equal(models[key].first) {
					t.Fatalf("%s: %+v, want %+v", key, o, models[key])
				}
			}
		})
	})
}

func randomRun(rnd func(int) int) modelRun {
	return modelRun{
		found: rnd(10) > 0, paused: rnd(10) == 0, acquire: rnd(10) > 0,
		class:  []abi.ErrorClass{"", "", abi.ErrorTransient, abi.ErrorConflict, abi.ErrorConflict, abi.ErrorConflict, abi.ErrorPermanent, "trap", "unheard-of"}[rnd(9)],
		after:  []time.Duration{0, 0, 0, time.Minute}[rnd(4)],
		action: []abi.Action{{}, {Requeue: true}, {Requeue: true, After: time.Hour}}[rnd(3)],
		policy: rnd(3),
	}
}

func (r *modelRun) reconcile() (abi.Result, error) {
	switch r.class {
	case "":
		return abi.Result{Action: r.action}, nil
	case "trap":
		return abi.Result{}, &abi.CallError{Kind: abi.FailureTrap, Err: errors.New("unreachable")}
	default:
		return abi.Result{Error: &abi.ResultError{Class: r.class, Message: "no", After: r.after}}, nil
	}
}

func (r *modelRun) errorPolicy() (abi.Result, error) {
	switch r.policy {
	case 0:
		return abi.Result{}, abi.ErrNoErrorPolicy
	case 1:
		return abi.Result{Action: abi.Action{Requeue: true, After: time.Hour}}, nil
	default:
		return abi.Result{Error: &abi.ResultError{Message: "the policy fails"}}, nil
	}
}

// summary is the part of an outcome that the model predicts.
func summary(o Outcome) Outcome {
	s := Outcome{Attempt: o.Attempt, Revision: o.Revision, Action: o.Action, DecidedBy: o.DecidedBy}
	if !o.Failed() {
		s.Err = o.Err
	}
	return s
}

// cmpopts compares errors by identity.
var cmpopts = cmp.Comparer(func(a, b error) bool { return a == nil && b == nil || errors.Is(a, b) || errors.Is(b, a) })
