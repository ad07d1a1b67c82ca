// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

// recorder is an Observer that logs to the log of its cluster.
type recorder struct {
	*cluster

	id  string
	out Outcome // of the last run
}

func (r *recorder) Started(s *Started) {
	r.id = s.Request.ID
	r.log = append(r.log, fmt.Sprintf("started %d %s %t", s.Revision, s.Request.Key, s.Finalize))
}

func (r *recorder) Returned(id string) {
	if id != r.id {
		r.t.Errorf("run %q returned, and %q was started", id, r.id)
	}
	r.log = append(r.log, "returned")
}

func (r *recorder) Ended(out *Outcome) {
	r.log = append(r.log, fmt.Sprintf("ended %q", out.Failure))
	r.out = *out
}

// An observer sees the steps of a run in order: declarations are applied between Returned and Ended. Without a call of
// the guest, it sees only the end. The outcome is complete then.
func TestObserver_SeesEachRunInOrder(t *testing.T) {
	status := abi.Declared{Status: []byte("s")}
	trap := func(context.Context, *abi.Request) (abi.Result, error) {
		return abi.Result{}, &abi.CallError{Kind: abi.FailureTrap, Func: abi.ExportReconcile, Err: errors.New("unreachable")}
	}
	started := "started 7 default/web false"
	for name, c := range map[string]struct {
		change  func(*cluster)
		script  script
		log     []string
		failure abi.FailureKind
		err     error
		fuel    int64
	}{
		"success":      {nil, script{reconcile: declares(status, nil)}, []string{started, "reconcile", "returned", "declare 0 false false s", `ended ""`}, "", nil, 100},
		"guest's":      {nil, script{reconcile: failWith(abi.ResultError{Message: "no"})}, []string{started, "reconcile", "returned", `ended "error"`}, abi.FailureError, nil, 101},
		"trap":         {nil, script{reconcile: trap}, []string{started, "reconcile", "returned", `ended "trap"`}, abi.FailureTrap, nil, 101},
		"not declared": {func(c *cluster) { c.refuse = map[string]error{"declare": errAPI} }, script{reconcile: declares(status, nil)}, []string{started, "reconcile", "returned", "declare 0 false false s", `ended "error"`}, abi.FailureError, errAPI, 101},
		"finalize": {
			func(c *cluster) { c.deleting = true },
			script{reconcile: await},
			[]string{"started 7 default/web true", "finalize", "returned", "remove " + finalizerName, `ended ""`},
			"", nil, 100,
		},
		"no finalizer": {
			func(c *cluster) { c.finalizers, c.refuse = nil, map[string]error{"add": errAPI} },
			script{reconcile: await},
			[]string{"add " + finalizerName, `ended "error"`},
			abi.FailureError, errAPI, 1,
		},
		"no guest": {
			nil, script{reconcile: await, acquire: &abi.CallError{Kind: abi.FailureMemory, Err: errAPI}}, []string{`ended "memory"`}, abi.FailureMemory, errAPI, 0,
		},
		"gone":   {func(c *cluster) { c.gone = true }, script{reconcile: await}, []string{`ended ""`}, "", ErrObjectNotFound, 0},
		"paused": {func(c *cluster) { c.paused = "true" }, script{reconcile: await}, []string{`ended ""`}, "", ErrPaused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &recorder{cluster: &cluster{t: t, finalizers: []any{finalizerName}}}
				if c.change != nil {
					c.change(o.cluster)
				}
				s := c.script
				a := newApplier(t, &s, o.on(&s), func(cfg *Config) { cfg.Observer = o })
				out := a.Apply(t.Context(), testKey, testReason, time.Now().Add(-time.Minute))
				if diff := cmp.Diff(c.log, o.log); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if o.out.Failure != c.failure || out.Failed() != (c.failure != "") || c.err != nil && !errors.Is(o.out.Err, c.err) {
					t.Errorf("%q, %v, want %q, %v", o.out.Failure, o.out.Err, c.failure, c.err)
				}
				if o.out.Queued != time.Minute || o.out.Fuel != c.fuel || o.out.Duration != out.Duration {
					t.Errorf("queued for %v, %d fuel (want %d), took %v and %v", o.out.Queued, o.out.Fuel, c.fuel, o.out.Duration, out.Duration)
				}
			})
		})
	}
}

// An interrupted run has ended, but has not failed.
func TestObserver_InterruptedRunHasNotFailed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := &recorder{cluster: &cluster{t: t}}
	s := &script{reconcile: func(context.Context, *abi.Request) (abi.Result, error) {
		cancel()
		return abi.Result{}, ctx.Err()
	}}
	newApplier(t, s, func(cfg *Config) { cfg.Observer = o }).Apply(ctx, testKey, testReason, time.Time{})
	want := []string{"started 7 default/web false", "returned", `ended ""`}
	if diff := cmp.Diff(want, o.log); diff != "" || !errors.Is(o.out.Err, ErrInterrupted) || o.out.Queued != 0 {
		t.Errorf("%v (-want +got):\n%s", o.out.Err, diff)
	}
}
