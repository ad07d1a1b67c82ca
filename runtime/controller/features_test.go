// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// hooks is the guest's map and filter.
type hooks struct {
	mapped func(*abi.Event) ([]abi.Key, error)
	filter func(*abi.Event) (bool, error)
}

func (h hooks) Map(_ context.Context, ev *abi.Event) ([]abi.Key, error) { return h.mapped(ev) }
func (h hooks) Filter(_ context.Context, ev *abi.Event) (bool, error)   { return h.filter(ev) }

func (f *fixture) createSecret(name string, labels map[string]string) *corev1.Secret {
	f.t.Helper()
	s, err := f.client.CoreV1().Secrets(f.ns).Create(f.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *fixture) patch(name, json string) {
	f.t.Helper()
	_, err := f.client.CoreV1().ConfigMaps(f.ns).Patch(f.t.Context(), name, types.MergePatchType, []byte(json), metav1.PatchOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
}

// A watch with a mapper triggers the object that a label names, before and
// after it changes.
func TestController_LabelSaysWhoIsConcerned(t *testing.T) {
	f := newFixture(t, ok, func(c *Config) {
		c.Related[0].Map = queue.Label{Key: "for", Target: queue.Target{Resource: "secrets"}}.Map
	}).synced()
	f.create("a")
	f.wantOutcome("a", of("a", abi.ReasonObjectUpdated))
	f.createSecret("s", map[string]string{"for": "a"})
	f.wantOutcome("a, for the secret", of("a", abi.ReasonRelated))
	f.wantStop(nil)
}

// The guest's map is called outside of the watch; if it fails, it is retried.
func TestController_GuestMapsEvents(t *testing.T) {
	calls := 0
	f := newFixture(t, ok, func(c *Config) {
		c.Related[0].Map = nil
		c.Hooks = hooks{mapped: func(ev *abi.Event) ([]abi.Key, error) {
			if calls++; calls == 1 {
				return nil, errors.New("not now")
			}
			return []abi.Key{{Name: "a"}}, nil
		}}
	}).synced()
	f.create("a")
	f.wantOutcome("a", of("a", abi.ReasonObjectUpdated))
	f.createSecret("s", nil)
	o := f.wantOutcome("a, for the secret", of("a", abi.ReasonRelated))
	if o.Reasons.First.Ref.Name != "s" {
		t.Errorf("reason %v", o.Reasons.First)
	}
	f.wantStop(nil)
}

// The guest's map may read each kind that the controller watches: it is called once all of them are listed.
func TestController_GuestMapsOnceAllKindsAreListed(t *testing.T) {
	var group string
	read := make(chan error, 10)
	f := newFixture(t, ok, func(c *Config) {
		group = c.For.Namespaces[0] + ".wasmctl.dev" // a new one for each run of the test
		c.Related[0].Map = nil
		c.Related = append(c.Related, parts(group))
		cache, other := NewCache(), c.Related[1].Resource
		c.Cache = cache
		c.Hooks = hooks{mapped: func(*abi.Event) ([]abi.Key, error) {
			_, err := cache.Get(other, abi.Key{Namespace: "default", Name: "x"})
			read <- err
			return []abi.Key{{Name: "a"}}, nil
		}}
	})
	f.createSecret("s", nil)
	until(t, "the Secrets are listed, and the third watch waits", func() bool {
		w := f.Stats().Watches
		return w[1].State.Objects > 0 && w[2].State.Phase == watcher.Absent
	})
	createParts(t, group)
	if err := <-read; err != nil {
		t.Errorf("a read of a kind that was not listed: %v", err)
	}
	f.wantStop(nil)
}

// Rule 23: an event without relevant changes triggers nothing, and still updates the store; the guest's filter is
// called if the predicates require it.
func TestController_PredicatesHideEvents(t *testing.T) {
	f := newFixture(t, ok, func(c *Config) { c.For.Predicates = []string{"labels"} }).synced()
	f.create("a")
	f.wantOutcome("a", of("a", abi.ReasonObjectUpdated))
	f.patch("a", `{"data": {"hidden": "yes"}}`)
	until(t, "the store has it", func() bool {
		b, err := f.cache.Get(f.cfg.For.Resource, abi.Key{Namespace: f.ns, Name: "a"})
		return err == nil && slices.Contains(slices.Collect(maps.Keys(decode(t, b)["data"].(map[string]any))), "hidden")
	})
	f.patch("a", `{"metadata": {"labels": {"seen": "yes"}}}`)
	o := f.wantOutcome("a", of("a", abi.ReasonObjectUpdated))
	if st := f.Stats(); st.Started != 2 || len(o.Reasons.More) != 0 {
		t.Errorf("%d runs, the last for %v; want 2", st.Started, o.Reasons)
	}
	f.wantStop(nil)
}

func decode(t *testing.T, b []byte) map[string]any {
	t.Helper()
	m := map[string]any{"data": map[string]any{}}
	o, err := abi.DecodeObject(b)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(m, o)
	return m
}

// Several namespaces are watched individually, and no others.
func TestController_SeveralNamespaces(t *testing.T) {
	cluster := devclustertest.Shared(t)
	second, other := devclustertest.Namespace(t, cluster), devclustertest.Namespace(t, cluster)
	f := newFixture(t, ok, func(c *Config) { c.For.Namespaces = append(c.For.Namespaces, second) }).synced()
	for _, ns := range []string{other, second, f.ns} {
		if _, err := f.client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for len(seen) < 2 {
		seen[f.wantOutcome("a", of("a", abi.ReasonObjectUpdated)).Key.Namespace] = true
	}
	if seen[other] {
		t.Error("an object of a namespace that is not watched was reconciled")
	}
	f.wantStop(nil)
}

// Watches are added and removed while the controller runs; the others continue.
func TestController_WatchesComeAndGo(t *testing.T) {
	f := newFixture(t, ok, func(c *Config) { c.Related = nil }).synced()
	f.create("a")
	f.wantOutcome("a", of("a", abi.ReasonObjectUpdated))
	w := secrets(f.ns)
	w.Map = queue.Label{Key: "for", Target: queue.Target{Resource: "secrets"}}.Map
	h, err := f.AddWatch(w)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.createSecret("s", map[string]string{"for": "a"})
	f.wantOutcome("a, for the secret", of("a", abi.ReasonRelated))
	if n := len(f.cfg.Watches.States()); n != 2 {
		t.Errorf("%d watches, want 2", n)
	}
	f.RemoveWatch(h)
	f.RemoveWatch(h)
	if n := len(f.cfg.Watches.States()); n != 1 {
		t.Errorf("%d watches after the removal, want 1", n)
	}
	f.create("b")
	f.wantOutcome("b", of("b", abi.ReasonObjectUpdated))
	f.wantStop(nil)
	if n := len(f.cfg.Watches.States()); n != 0 {
		t.Errorf("%d watches after the end, want 0", n)
	}
}

// Triggers other than watches: for named objects, and for all at low priority.
func TestController_TriggersAskForReconciles(t *testing.T) {
	triggers := make(chan trigger.Trigger)
	f := newFixture(t, ok, func(c *Config) { c.Triggers = []trigger.Source{trigger.Chan[trigger.Trigger]{C: triggers}} }).synced()
	f.create("a")
	f.create("b")
	for range 2 {
		f.wantOutcome("a or b", func(o applier.Outcome) bool { return o.Reasons.First.Type == abi.ReasonObjectUpdated })
	}
	triggers <- trigger.Trigger{Refs: []abi.Key{{Namespace: f.ns, Name: "b"}}}
	f.wantOutcome("b", of("b", abi.ReasonTriggered))
	if n := f.TriggerAll(t.Context(), abi.ReasonResync); n != 2 {
		t.Errorf("triggered %d objects, want 2", n)
	}
	f.wantOutcome("a", of("a", abi.ReasonResync))
	f.wantStop(nil)
}

// A paused controller collects requests; an object with the annotation is not reconciled until the annotation is
// removed.
func TestController_PausesAsAWholeAndPerObject(t *testing.T) {
	f := newFixture(t, ok, func(c *Config) { c.For.Predicates = []string{"labels"} }).synced()
	f.Pause()
	f.create("a")
	until(t, "the request is there", func() bool { return f.Stats().Ready == 1 })
	if st := f.Stats(); st.Started != 0 || !st.Paused {
		t.Errorf("%+v", st)
	}
	f.Resume()
	f.wantOutcome("a", of("a", abi.ReasonObjectUpdated))
	f.patch("a", `{"metadata": {"annotations": {"wasmctl.dev/paused": "true"}}}`)
	f.wantOutcome("a, paused", func(o applier.Outcome) bool { return errors.Is(o.Err, applier.ErrPaused) })
	f.patch("a", `{"metadata": {"annotations": {"wasmctl.dev/paused": null}}}`)
	f.wantOutcome("a", func(o applier.Outcome) bool { return o.Err == nil })
	f.wantStop(nil)
}

// A standby syncs its caches and fills its queue, and starts when it is
// elected.
func TestController_StandbyIsWarm(t *testing.T) {
	active := make(chan struct{})
	f := newFixture(t, ok, func(c *Config) { c.Active = active }).synced()
	f.create("a")
	until(t, "the request is there", func() bool { return f.Stats().Ready == 1 })
	if b, err := f.cache.Get(f.cfg.For.Resource, abi.Key{Namespace: f.ns, Name: "a"}); err != nil || b == nil {
		t.Errorf("the cache of a standby: %v", err)
	}
	if st := f.Stats(); st.Started != 0 {
		t.Errorf("%d reconciles of a standby", st.Started)
	}
	close(active)
	f.wantOutcome("a", of("a", abi.ReasonObjectUpdated))
	f.wantStop(nil)
}

// The cache serves watched objects, in order and in pages, and explains why it cannot serve others.
func TestCache_AnswersForWhatIsWatched(t *testing.T) {
	f := newFixture(t, ok, nil).synced()
	for i := range 5 {
		f.createSecret(fmt.Sprintf("s%d", i), map[string]string{"odd": fmt.Sprint(i%2 == 1)})
	}
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	all := func(labels.Labels, []byte) bool { return true }
	until(t, "the store has all", func() bool {
		objects, _, _, err := f.cache.List(gvr, f.ns, "", nil, all, abi.Key{}, 10)
		return err == nil && len(objects) == 5
	})
	odd := func(l labels.Labels, _ []byte) bool { return l.Get("odd") == "false" }
	var err error
	var names []string
	var last abi.Key
	for more := true; more; {
		var page [][]byte
		if page, more, last, err = f.cache.List(gvr, "", "", nil, odd, last, 2); err != nil {
			t.Fatal(err)
		}
		for _, b := range page {
			names = append(names, decode(t, b)["metadata"].(map[string]any)["name"].(string))
		}
	}
	if !slices.Equal(names, []string{"s0", "s2", "s4"}) {
		t.Errorf("pages have %v", names)
	}
	gvr.Resource = "pods"
	_, err = f.cache.Get(gvr, abi.Key{Namespace: f.ns, Name: "s0"})
	if e, ok := errors.AsType[*CacheError](err); !ok || e.Status() != abi.StatusBadRequest {
		t.Errorf("a resource that is not watched: %v", err)
	}
	f.wantStop(nil)
	_, err = NewCache().Get(gvr, abi.Key{Name: "a"})
	if err == nil {
		t.Error("an empty cache has answered")
	}
}

// An index omits known objects, until the watch delivers another version.
func TestCache_AnIndexForgetsWhatChanges(t *testing.T) {
	f := newFixture(t, ok, nil).synced()
	f.createSecret("a", nil)
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	index := &abi.Index{Name: "x", Value: "wanted"}
	list := func() []map[string]any {
		objects, _, _, err := f.cache.List(secrets, f.ns, "", index, func(labels.Labels, []byte) bool { return true }, abi.Key{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		var decoded []map[string]any
		for _, b := range objects {
			decoded = append(decoded, decode(t, b))
		}
		return decoded
	}
	until(t, "the store has the object", func() bool { return len(list()) == 1 })
	meta := list()[0]["metadata"].(map[string]any)
	entry := abi.IndexEntry{Namespace: f.ns, Name: "a", UID: meta["uid"].(string), ResourceVersion: meta["resourceVersion"].(string), Values: []string{"other"}}
	f.cache.Learn(secrets, index, []abi.IndexEntry{entry})
	if n := len(list()); n != 0 {
		t.Errorf("%d objects that lack the value", n)
	}
	_, err := f.client.CoreV1().Secrets(f.ns).Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the object is listed again", func() bool { return len(list()) == 1 })
	f.wantStop(nil)
}

// Children are found by the uid of their controller, and only of owned kinds.
func TestCache_KnowsTheChildrenOfAnOwner(t *testing.T) {
	f := newFixture(t, ok, nil).synced()
	a := f.create("a")
	isController := true
	for name, controller := range map[string]*bool{"mine": &isController, "not-controlled": nil} {
		_, err := f.client.CoreV1().Secrets(f.ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: a.UID, Controller: controller},
		}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	children := func() (names []string) {
		f.cache.Children(abi.Key{}, string(a.UID), func(_ schema.GroupVersionResource, child abi.Key, _, _ string) bool {
			names = append(names, child.Name)
			return true
		})
		return names
	}
	until(t, "the child is known", func() bool { return slices.Equal(children(), []string{"mine"}) })
	until(t, "both have the owner", func() bool {
		all := func(labels.Labels, []byte) bool { return true }
		owned, _, last, err := f.cache.List(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "", string(a.UID), nil, all, abi.Key{}, 10)
		return err == nil && len(owned) == 2 && last.Name == "not-controlled"
	})
	if err := f.client.CoreV1().Secrets(f.ns).Delete(t.Context(), "mine", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the child is gone", func() bool { return len(children()) == 0 })
	f.wantStop(nil)
}

// Rule 22: a run sees what the object's previous run wrote.
func TestController_RunSeesTheWritesOfTheRunBefore(t *testing.T) {
	const turns = 10
	client := make(chan kubernetes.Interface, 1)
	var turn atomic.Int64
	f := newFixture(t, func(ctx context.Context, req *abi.Request) (abi.Result, error) {
		c := <-client
		defer func() { client <- c }()
		seen, _ := decode(t, req.Object)["data"].(map[string]any)["turn"].(string)
		if n := turn.Load(); n > 0 && seen != fmt.Sprint(n) {
			t.Errorf("run %s sees turn %q, want %d (stale %t)", req.ID, seen, n, req.Stale)
		}
		if turn.Load() == turns {
			return abi.Result{}, nil
		}
		cm, err := c.CoreV1().ConfigMaps(req.Key.Namespace).Patch(ctx, req.Key.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"data": {"turn": "%d"}}`, turn.Add(1)), metav1.PatchOptions{})
		if err != nil {
			return abi.Result{}, err
		}
		abi.RunFrom(ctx).Wrote(abi.Write{Op: abi.OpAPIPatch, Version: "v1", Resource: "configmaps", Key: req.Key, UID: string(cm.UID), ResourceVersion: cm.ResourceVersion})
		return abi.Result{Action: abi.Action{Requeue: true}}, nil
	}, func(c *Config) { c.AwaitWrites = time.Minute }).synced()
	f.create("a")
	client <- f.client
	for range turns {
		if o := f.wantOutcome("a", func(o applier.Outcome) bool { return o.Key.Name == "a" }); o.Writes != 1 || o.Stale || o.Err != nil {
			t.Errorf("%d writes, stale %t, %v", o.Writes, o.Stale, o.Err)
		}
	}
	// A stop ends watches first: no run may wait for a write at that time.
	f.wantOutcome("a", func(o applier.Outcome) bool { return o.Key.Name == "a" && o.Writes == 0 })
	f.wantStop(nil)
}

// After a deletion whose response has no version, a run waits until the object is gone, but no longer than the limit if
// it remains.
func TestCache_AwaitsDeletions(t *testing.T) {
	f := newFixture(t, ok, nil).synced()
	s := f.createSecret("s", nil)
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	key := abi.Key{Namespace: f.ns, Name: "s"}
	has := func() bool {
		b, err := f.cache.Get(gvr, key)
		return err == nil && b != nil
	}
	until(t, "the store has it", has)
	w := abi.Write{Op: abi.OpAPIDelete, Version: "v1", Resource: "secrets", Key: key, UID: string(s.UID), Deleted: true}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if !f.cache.AwaitWrites(ended, []abi.Write{w}) {
		t.Error("not stale, although the object is there")
	}
	if err := f.client.CoreV1().Secrets(f.ns).Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if f.cache.AwaitWrites(t.Context(), []abi.Write{w}) || has() {
		t.Error("the deletion is not in the store")
	}
	f.wantStop(nil)
}

// The state of one object: that it failed, why, and when it runs again.
func TestController_SaysWhatItKnowsOfAnObject(t *testing.T) {
	f := newFixture(t, func(context.Context, *abi.Request) (abi.Result, error) {
		return abi.Result{Error: &abi.ResultError{Message: "not yet"}}, nil
	}, func(c *Config) { c.Backoff = applier.Backoff{Initial: time.Hour, Max: time.Hour} }).synced()
	f.create("a")
	key := abi.Key{Namespace: f.ns, Name: "a"}
	f.wantOutcome("a failure", func(o applier.Outcome) bool { return o.Key == key && o.Failed() })
	var got Object
	until(t, "it waits for its retry", func() bool {
		var err error
		if got, err = f.Object(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		return got.State == scheduler.Waiting
	})
	if got.Running || got.FailedRuns != 1 || got.Msg.First.Type != abi.ReasonRetry || time.Until(got.At) < time.Minute {
		t.Errorf("%+v", got)
	}
	if st := f.Stats().Reconciles; st.Failing != 1 {
		t.Errorf("%+v, want one object that fails", st)
	}
	if got, err := f.Object(t.Context(), abi.Key{Namespace: f.ns, Name: "unknown"}); err != nil || !reflect.DeepEqual(got, Object{}) {
		t.Errorf("an object that nothing is known of: %+v, %v", got, err)
	}
	f.wantStop(nil)
	if _, err := f.Object(t.Context(), key); !errors.Is(err, runner.ErrNotRunning) {
		t.Errorf("after Run: %v, want ErrNotRunning", err)
	}
}
