// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/shard"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

func TestMain(m *testing.M) { devclustertest.Main(m) }

// native is a module that consists of one Go function: a controller needs only Acquire of a module; hosting modules is
// the task of another package.
type native func(ctx context.Context, req *abi.Request) (abi.Result, error)

func (f native) Acquire(context.Context) (abi.Guest, func(), error) { return f, func() {}, nil }
func (f native) Revision() uint64                                   { return 1 }
func (f native) Fuel() int64                                        { return 0 }
func (f native) Reconcile(ctx context.Context, req *abi.Request) (abi.Result, error) {
	return f(ctx, req)
}

func (f native) Finalize(ctx context.Context, req *abi.Request) (abi.Result, error) {
	return f(ctx, req)
}

func (f native) ErrorPolicy(context.Context, *abi.Failure) (abi.Result, error) {
	return abi.Result{}, abi.ErrNoErrorPolicy
}

// fixture is a controller of the ConfigMaps of one namespace that own Secrets, on the real API server.
type fixture struct {
	*Controller
	t        *testing.T
	ns       string
	client   kubernetes.Interface
	outcomes chan applier.Outcome
	stop     context.CancelFunc
	force    chan struct{}
	ended    chan error
}

// configMaps watches the ConfigMaps of a namespace except the one that each namespace gets automatically at some time.
func configMaps(ns string) Watch {
	return Watch{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Namespaces: []string{ns}, FieldSelector: "metadata.name!=kube-root-ca.crt",
	}
}

// secrets watches the Secrets of a namespace for the ConfigMaps that own them.
func secrets(ns string) Watch {
	return Watch{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Namespaces: []string{ns}, Owned: true, Map: queue.Owners{Kind: "ConfigMap", Resource: "secrets"}.Map,
	}
}

// parts watches a kind that does not exist yet.
func parts(group string) Watch {
	return Watch{
		Resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: "parts"}, Kind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Part"},
		Map: queue.Owners{Kind: "ConfigMap", Resource: "parts"}.Map,
	}
}

// createParts creates the kind that parts watches.
func createParts(t *testing.T, group string) {
	t.Helper()
	devclustertest.Apply(t, devclustertest.Shared(t), []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parts.`+group+`}
spec:
  group: `+group+`
  scope: Namespaced
  names: {plural: parts, singular: part, kind: Part}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`))
}

func newFixture(t *testing.T, module native, change func(*Config)) *fixture {
	t.Helper()
	cluster := devclustertest.Shared(t)
	ns := devclustertest.Namespace(t, cluster)
	watching, err := watcher.NewClient(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, ns: ns, client: client, outcomes: make(chan applier.Outcome, 1000), force: make(chan struct{}), ended: make(chan error, 1)}
	cfg := Config{
		Config: applier.Config{Controller: "test", Module: module, Observer: applier.EndedFunc(func(o *applier.Outcome) { f.outcomes <- *o })},
		For:    configMaps(ns), Related: []Watch{secrets(ns)}, Watches: watcher.NewSet(watching, watcher.Config{}),
	}
	if change != nil {
		change(&cfg)
	}
	if f.Controller, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	f.stop = stop
	go func() { f.ended <- f.Run(ctx, f.force) }()
	return f
}

// synced waits until all watches are ready, so that later objects are changes, and not part of the first list.
func (f *fixture) synced() *fixture {
	f.t.Helper()
	until(f.t, "all watches are ready", func() bool {
		return !slices.ContainsFunc(f.Stats().Watches, func(w WatchState) bool { return w.State.Phase != watcher.Ready })
	})
	return f
}

func (f *fixture) create(name string) *corev1.ConfigMap {
	f.t.Helper()
	cm, err := f.client.CoreV1().ConfigMaps(f.ns).Create(f.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return cm
}

// wantOutcome waits for an outcome that match accepts.
func (f *fixture) wantOutcome(what string, match func(applier.Outcome) bool) applier.Outcome {
	f.t.Helper()
	limit := time.After(time.Minute)
	var seen []string
	for {
		select {
		case o := <-f.outcomes:
			if match(o) {
				return o
			}
			seen = append(seen, fmt.Sprintf("%s: %s (%v)", o.Key, o.Reasons.First, o.Err))
		case <-limit:
			f.t.Fatalf("no outcome with %s; seen: %s", what, strings.Join(seen, ", "))
		}
	}
}

func (f *fixture) wantStop(want error) {
	f.t.Helper()
	f.stop()
	select {
	case err := <-f.ended:
		if !errors.Is(err, want) {
			f.t.Errorf("Run: %v, want %v", err, want)
		}
	case <-time.After(time.Minute):
		f.t.Fatal("Run does not return")
	}
}

func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	limit := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("does not happen: " + what)
		}
	}
}

func of(name string, reason abi.ReasonType) func(applier.Outcome) bool {
	return func(o applier.Outcome) bool { return o.Key.Name == name && o.Reasons.First.Type == reason }
}

var ok = native(func(context.Context, *abi.Request) (abi.Result, error) { return abi.Result{}, nil })

// Rule 24: a change of a child triggers its owner, before and after it changes
// hands; rule 20: a deleted object is not reconciled.
func TestController_FollowsObjectsAndTheirChildren(t *testing.T) {
	f := newFixture(t, ok, nil).synced()
	a, b := f.create("a"), f.create("b")
	f.wantOutcome("a", of("a", abi.ReasonObjectUpdated))
	f.wantOutcome("b", of("b", abi.ReasonObjectUpdated))

	owner := func(cm *corev1.ConfigMap) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: cm.Name, UID: cm.UID}}
	}
	secrets := f.client.CoreV1().Secrets(f.ns)
	child, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "child", OwnerReferences: owner(a)}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := f.wantOutcome("a, for its child", of("a", abi.ReasonRelated))
	if want := (abi.Reason{Type: abi.ReasonRelated, Resource: "secrets", Ref: abi.Key{Namespace: f.ns, Name: "child"}}); o.Reasons.First != want {
		t.Errorf("reason %v, want %v", o.Reasons.First, want)
	}
	child.OwnerReferences = owner(b)
	if _, err := secrets.Update(t.Context(), child, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for !seen["a"] || !seen["b"] {
		seen[f.wantOutcome("a and b", func(o applier.Outcome) bool { return o.Reasons.First.Type == abi.ReasonRelated }).Key.Name] = true
	}

	if err := f.client.CoreV1().ConfigMaps(f.ns).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if o := f.wantOutcome("a, gone", of("a", abi.ReasonObjectDeleted)); !errors.Is(o.Err, applier.ErrObjectNotFound) {
		t.Errorf("outcome of a deleted object: %v", o.Err)
	}
	f.wantStop(nil)
}

// Rule 10: nothing is reconciled before every watch has synced.
func TestController_WaitsForEveryWatch(t *testing.T) {
	var group string
	f := newFixture(t, ok, func(c *Config) {
		group = c.For.Namespaces[0] + ".wasmctl.dev" // a new one for each run of the test
		c.Related = append(c.Related, parts(group))
	})
	f.create("early")
	until(t, "the request is there, and the third watch waits", func() bool {
		st := f.Stats()
		return st.Ready == 1 && st.Watches[2].State.Phase == watcher.Absent
	})
	if st := f.Stats(); st.Started != 0 {
		t.Errorf("%d reconciles before all watches have synced", st.Started)
	}
	createParts(t, group)
	f.wantOutcome("early", func(o applier.Outcome) bool { return o.Key.Name == "early" })
	f.wantStop(nil)
}

// Rule 10: a watch that is marked optional is not waited for.
func TestController_OptionalWatchIsNotWaitedFor(t *testing.T) {
	f := newFixture(t, ok, func(c *Config) {
		w := parts(c.For.Namespaces[0] + ".wasmctl.dev") // no such group exists
		w.Optional = true
		c.Related = append(c.Related, w)
	})
	f.create("early")
	f.wantOutcome("early", func(o applier.Outcome) bool { return o.Key.Name == "early" })
	if st := f.Stats(); st.Watches[2].State.Phase == watcher.Ready {
		t.Error("the optional watch is ready, so that nothing was shown")
	}
	f.wantStop(nil)
}

// Rule 16: a guest that hangs blocks its object and a worker, but neither the watch nor others. Rule 2: meanwhile
// requests of its object cause one more run.
func TestController_SlowGuestSlowsOnlyItself(t *testing.T) {
	var mu sync.Mutex
	runs := map[string]int{}
	hang := make(chan struct{})
	f := newFixture(t, func(_ context.Context, req *abi.Request) (abi.Result, error) {
		mu.Lock()
		runs[req.Key.Name]++
		first := runs[req.Key.Name] == 1
		mu.Unlock()
		if req.Key.Name == "slow" && first {
			<-hang
		}
		return abi.Result{}, nil
	}, func(c *Config) { c.Concurrency = 2 }).synced()
	slow := f.create("slow")
	until(t, "slow runs", func() bool { return f.Stats().Running == 1 })
	for i := range 20 {
		f.create(fmt.Sprintf("quick%d", i))
		slow.Labels = map[string]string{"turn": fmt.Sprint(i)}
		updated, err := f.client.CoreV1().ConfigMaps(f.ns).Update(t.Context(), slow, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		slow = updated
	}
	for range 20 {
		f.wantOutcome("a quick one", func(o applier.Outcome) bool { return strings.HasPrefix(o.Key.Name, "quick") })
	}
	until(t, "every event has become a request", func() bool { return f.Stats().Received == 1+20+20 })
	close(hang)
	f.wantOutcome("slow", of("slow", abi.ReasonObjectUpdated))
	f.wantOutcome("slow, once more", of("slow", abi.ReasonObjectUpdated))
	f.wantStop(nil)
	if runs["slow"] != 2 {
		t.Errorf("slow ran %d times, want 2", runs["slow"])
	}
}

// Rule 18: a failed run is retried, as attempt 2, for the reason Retry.
func TestController_FailedRunIsTriedAgain(t *testing.T) {
	f := newFixture(t, func(_ context.Context, req *abi.Request) (abi.Result, error) {
		if req.Attempt < 3 {
			return abi.Result{Error: &abi.ResultError{Message: "not yet"}}, nil
		}
		return abi.Result{Action: abi.Action{Requeue: true, After: time.Millisecond}}, nil
	}, func(c *Config) { c.Backoff = applier.Backoff{Initial: time.Millisecond} })
	f.create("a")
	f.wantOutcome("attempt 2", func(o applier.Outcome) bool {
		return o.Attempt == 2 && o.Reasons.First.Type == abi.ReasonRetry && o.Failed()
	})
	f.wantOutcome("attempt 3", func(o applier.Outcome) bool { return o.Attempt == 3 && !o.Failed() })
	f.wantOutcome("a requeue", func(o applier.Outcome) bool { return o.Attempt == 1 && o.Reasons.First.Type == abi.ReasonRequeue })
	f.wantStop(nil)
}

// Rule 9: a run may finish after a stop; a forced stop interrupts it.
func TestController_StopsInOrderAndByForce(t *testing.T) {
	hang := make(chan struct{})
	f := newFixture(t, func(ctx context.Context, _ *abi.Request) (abi.Result, error) {
		select {
		case <-hang:
			return abi.Result{}, nil
		case <-ctx.Done():
			return abi.Result{}, ctx.Err()
		}
	}, nil).synced()
	f.create("a")
	until(t, "a runs", func() bool { return f.Stats().Running == 1 })
	f.stop()
	close(hang)
	if o := f.wantOutcome("a", of("a", abi.ReasonObjectUpdated)); o.Err != nil {
		t.Errorf("a run that could finish: %v", o.Err)
	}
	f.wantStop(nil)

	f = newFixture(t, func(ctx context.Context, _ *abi.Request) (abi.Result, error) {
		<-ctx.Done()
		return abi.Result{}, ctx.Err()
	}, nil).synced()
	f.create("b")
	until(t, "b runs", func() bool { return f.Stats().Running == 1 })
	close(f.force)
	if o := f.wantOutcome("b", of("b", abi.ReasonObjectUpdated)); !errors.Is(o.Err, applier.ErrInterrupted) {
		t.Errorf("a run that was interrupted: %v", o.Err)
	}
	f.wantStop(runner.ErrForced)
}

// Rule 20: a module that requests deletes is called without an object.
func TestController_DeletesAreReconciledOnRequest(t *testing.T) {
	gone := make(chan abi.Key, 1)
	f := newFixture(t, func(_ context.Context, req *abi.Request) (abi.Result, error) {
		if req.Object == nil {
			gone <- req.Key
		}
		return abi.Result{}, nil
	}, func(c *Config) { c.Deletes = true }).synced()
	f.create("a")
	f.wantOutcome("a", of("a", abi.ReasonObjectUpdated))
	if err := f.client.CoreV1().ConfigMaps(f.ns).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	f.wantOutcome("a, gone", of("a", abi.ReasonObjectDeleted))
	if key := <-gone; key != (abi.Key{Namespace: f.ns, Name: "a"}) {
		t.Errorf("called for %v", key)
	}
	f.wantStop(nil)
}

// However many deletions wait when a slot moves, each of them runs here, or is handed over.
func TestController_AHandoverLosesNoDeletion(t *testing.T) {
	const objects = maxHandover + 60
	var seen atomic.Int64
	blocked := make(chan struct{})
	f := newFixture(t, func(_ context.Context, req *abi.Request) (abi.Result, error) {
		if req.Object == nil {
			<-blocked
			seen.Add(1)
		}
		return abi.Result{}, nil
	}, func(c *Config) {
		c.Deletes = true
		c.Slots = &Slots{Count: func() int { return 1 }, Served: func(context.Context) (bool, error) { return false, nil }}
	})
	f.SplitBy(slots.Namespace)
	if err := f.Warm(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Open(t.Context(), 0, shard.Gained{}, &shard.Handover{}); err != nil {
		t.Fatal(err)
	}
	for i := range objects {
		f.create(fmt.Sprint("a", i))
	}
	until(t, "all have run", func() bool { return f.objects() == objects && f.Stats().Started >= objects && f.Stats().Ready == 0 })
	err := f.client.CoreV1().ConfigMaps(f.ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "all deletions are here", func() bool { return f.objects() == 0 && f.Stats().Ready+f.Stats().Running >= objects })
	left := make(chan shard.Handover)
	go func() { left <- f.Close(t.Context(), 0) }()
	close(blocked)
	if n := len((<-left).Deleted); int64(n)+seen.Load() != objects {
		t.Errorf("%d of %d deletions were handed over, and %d have run", n, objects, seen.Load())
	}
	f.wantStop(nil)
}

func TestNew_NamesWhatIsMissing(t *testing.T) {
	_, err := New(Config{Concurrency: -1, Related: []Watch{{}}})
	for _, want := range []string{"Controller is required", "Module and Watches", "for: Resource", "related[0]: Map", "Concurrency"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}
