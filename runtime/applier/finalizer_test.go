// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

func requeueAfter(d time.Duration) func(context.Context, *abi.Request) (abi.Result, error) {
	return func(context.Context, *abi.Request) (abi.Result, error) {
		return abi.Result{Action: abi.Action{Requeue: true, After: d}}, nil
	}
}

// Rule 21: every transition of the table of kube-rs' finalizer().
func TestFinalizer_EachEdge(t *testing.T) {
	present := []any{"other.io/x", finalizerName}
	boom := failWith(abi.ResultError{Message: "boom"})
	for name, c := range map[string]struct {
		cluster cluster
		guest   func(context.Context, *abi.Request) (abi.Result, error)
		log     []string
		failed  bool
		err     error
		action  abi.Action
		by      Decider
	}{
		"absent: added, then reconciled in the same run": {
			cluster{},
			await,
			[]string{"add " + finalizerName, "reconcile"},
			false, nil,
			abi.Action{},
			DecidedByReconcile,
		},
		"somebody else's only: added": {
			cluster{finalizers: []any{"other.io/x"}},
			await,
			[]string{"add " + finalizerName, "reconcile"},
			false, nil,
			abi.Action{},
			DecidedByReconcile,
		},
		"absent and not to be had: not reconciled": {
			cluster{refuse: map[string]error{"add": errAPI}},
			await,
			[]string{"add " + finalizerName},
			true, errAPI,
			abi.Action{Requeue: true, After: DefaultBackoffInitial},
			DecidedByBackoff,
		},
		"absent, and somebody was first: tried again at once": {
			cluster{refuse: map[string]error{"add": conflict("FinalizersChanged")}},
			await,
			[]string{"add " + finalizerName},
			true, nil,
			abi.Action{Requeue: true, After: ConflictDelay},
			DecidedByError,
		},
		"present: reconciled": {
			cluster{finalizers: present},
			await,
			[]string{"reconcile"},
			false, nil,
			abi.Action{},
			DecidedByReconcile,
		},
		"present: a failed reconcile leaves it": {
			cluster{finalizers: present},
			boom,
			[]string{"reconcile"},
			true, nil,
			abi.Action{Requeue: true, After: DefaultBackoffInitial},
			DecidedByBackoff,
		},
		"deleting: finalized, then removed": {
			cluster{finalizers: present, deleting: true},
			await,
			[]string{"finalize", "remove " + finalizerName},
			false, nil,
			abi.Action{},
			DecidedByFinalize,
		},
		"deleting: finalize fails, and it stays": {
			cluster{finalizers: present, deleting: true},
			boom,
			[]string{"finalize"},
			true, nil,
			abi.Action{Requeue: true, After: DefaultBackoffInitial},
			DecidedByBackoff,
		},
		"deleting: finalize is not done, and it stays": {
			cluster{finalizers: present, deleting: true},
			requeueAfter(time.Minute),
			[]string{"finalize"},
			false, nil,
			abi.Action{Requeue: true, After: time.Minute},
			DecidedByFinalize,
		},
		"deleting: not removed, so finalized again later": {
			cluster{finalizers: present, deleting: true, refuse: map[string]error{"remove": errAPI}},
			await,
			[]string{"finalize", "remove " + finalizerName},
			true, errAPI,
			abi.Action{Requeue: true, After: DefaultBackoffInitial},
			DecidedByBackoff,
		},
		"deleting without it: nothing": {
			cluster{deleting: true, finalizers: []any{"other.io/x"}},
			await,
			nil, false, ErrDeleting,
			abi.Action{},
			"",
		},
		"gone: nothing": {
			cluster{gone: true},
			await,
			nil, false, ErrObjectNotFound,
			abi.Action{},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.cluster.t = t
			s := &script{reconcile: c.guest}
			out := newApplier(t, s, c.cluster.on(s)).Apply(t.Context(), testKey, testReason, time.Time{})
			if diff := cmp.Diff(c.log, c.cluster.log); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if out.Failed() != c.failed || c.err != nil && !errors.Is(out.Err, c.err) || out.Action != c.action || out.DecidedBy != c.by {
				t.Errorf("%+v", out)
			}
		})
	}
}

// Rule 21: the run that added the finalizer continues with the object in the response.
func TestFinalizer_RunGoesOnWithTheNewObject(t *testing.T) {
	c := &cluster{t: t}
	s := &script{reconcile: func(ctx context.Context, req *abi.Request) (abi.Result, error) {
		if h, err := readHead(req.Object, finalizerName); err != nil || !h.finalizer || h.resourceVersion != "1" {
			t.Errorf("the guest sees %+v, %v", h, err)
		}
		if run := abi.RunFrom(ctx); string(run.Object) != string(req.Object) || run.ID != req.ID || run.Key != testKey {
			t.Errorf("operations see %+v", run)
		}
		return abi.Result{}, nil
	}}
	if out := newApplier(t, s, c.on(s)).Apply(t.Context(), testKey, testReason, time.Time{}); out.Err != nil || out.Writes != 1 {
		t.Errorf("%+v", out)
	}
}

// Rule 21: an object that was deleted or paused while its finalizer was being added is not reconciled.
func TestFinalizer_ChangedWhileItIsAdded(t *testing.T) {
	for name, c := range map[string]struct {
		answer map[string]any
		log    []string
		failed bool
	}{
		"paused": {map[string]any{"finalizers": []any{finalizerName}, "annotations": map[string]any{PausedAnnotation: "true"}}, []string{"add " + finalizerName}, false},
		"paused and deleted": {
			map[string]any{"deletionTimestamp": "x", "finalizers": []any{finalizerName}, "annotations": map[string]any{PausedAnnotation: "true"}},
			[]string{"add " + finalizerName},
			false,
		},
		"deleted, and it is there":     {map[string]any{"deletionTimestamp": "x", "finalizers": []any{finalizerName}}, []string{"add " + finalizerName, "finalize", "remove " + finalizerName}, false},
		"deleted, and it is not there": {map[string]any{"deletionTimestamp": "x"}, []string{"add " + finalizerName}, false},
		"gone again":                   {map[string]any{}, []string{"add " + finalizerName}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cl := &cluster{t: t}
			s := &script{reconcile: await}
			a := newApplier(t, s, cl.on(s), func(cfg *Config) { cfg.Cluster = answering{cl, pack(t, c.answer)} })
			out := a.Apply(t.Context(), testKey, testReason, time.Time{})
			if diff := cmp.Diff(c.log, cl.log); diff != "" || out.Failed() != c.failed {
				t.Errorf("%+v; requests (-want +got):\n%s", out, diff)
			}
		})
	}
}

// answering is a cluster that responds to AddFinalizer with a given object.
type answering struct {
	*cluster
	object []byte
}

func (a answering) AddFinalizer(ctx context.Context, object []byte, name string) ([]byte, error) {
	_, err := a.cluster.AddFinalizer(ctx, object, name)
	return a.object, err
}

// Rule 21, "if apply was started, then clean-up precedes the removal": whatever fails, in whatever order, if reconcile
// ever ran, a deleted object is removed only after a successful finalize; and it is removed in the end.
func TestFinalizer_CleanupPrecedesRemoval(t *testing.T) {
	forEachSeed(t, 400, func(t *testing.T, rnd func(int) int) {
		cl := &cluster{t: t, refuse: map[string]error{}}
		applied, cleaned := false, false
		s := &script{}
		s.reconcile = func(context.Context, *abi.Request) (abi.Result, error) {
			var res abi.Result
			switch rnd(4) {
			case 0:
				res.Error = &abi.ResultError{Message: "no"}
			case 1:
				res.Action.Requeue = true
			}
			if s.finalizing {
				cleaned = cleaned || res.Error == nil && !res.Action.Requeue
			} else {
				applied, cleaned = true, false
			}
			return res, nil
		}
		a := newApplier(t, s, cl.on(s))
		for step := 0; !cl.gone; step++ {
			if step > 200 {
				t.Fatalf("not gone: %v", cl.log)
			}
			for _, word := range []string{"add", "remove"} {
				delete(cl.refuse, word)
				if rnd(3) == 0 {
					cl.refuse[word] = []error{errAPI, conflict("x")}[rnd(2)]
				}
			}
			if rnd(6) == 0 {
				cl.deleting = true
				cl.gone = len(cl.finalizers) == 0
			}
			a.Apply(t.Context(), testKey, testReason, time.Time{})
		}
		if applied && !cleaned {
			t.Errorf("gone without clean-up: %v", cl.log)
		}
		if a.Apply(t.Context(), testKey, testReason, time.Time{}); a.Object(testKey) != (ObjectState{}) {
			t.Errorf("still known after it is gone: %+v", a.Object(testKey))
		}
	})
}

// A finalizer requires a cluster.
func TestNew_FinalizerNeedsACluster(t *testing.T) {
	cfg := Config{Controller: "c", Module: &script{}, Lookup: (&cluster{}).lookup, Finalizer: finalizerName}
	if _, err := New(cfg); err == nil {
		t.Error("a finalizer without a cluster was accepted")
	}
	cfg.Cluster, cfg.ClusterTimeout = &cluster{}, -1
	if _, err := New(cfg); err == nil {
		t.Error("a negative timeout was accepted")
	}
}
