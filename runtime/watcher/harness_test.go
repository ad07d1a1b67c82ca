// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// user runs one subscription and records its events as text: "Applied ns/a".
type user struct {
	t    *testing.T
	sub  *watcher.Subscription
	stop context.CancelFunc
	done chan struct{}
	// block, if not nil, blocks the handler until it is closed.
	block chan struct{}

	mu     sync.Mutex
	events []string                                  // guarded by mu
	mirror map[reflector.ObjectRef]string            // guarded by mu; resourceVersions according to the events
	last   map[reflector.ObjectRef]*reflector.Object // guarded by mu; New of each object's last event
	count  *watcher.Decoded
}

func newUser(t *testing.T) *user {
	return &user{
		t: t, done: make(chan struct{}), mirror: map[reflector.ObjectRef]string{}, last: map[reflector.ObjectRef]*reflector.Object{},
	}
}

func subscribe(t *testing.T, set *watcher.Set, source watcher.Source) *user {
	t.Helper()
	u := newUser(t)
	u.subscribe(set, source)
	return u
}

// subscribe runs the subscription until the test ends.
func (u *user) subscribe(set *watcher.Set, source watcher.Source) {
	u.sub = set.Acquire(source, u.handle)
	u.sub.Decoded = u.count
	ctx, cancel := context.WithCancel(u.t.Context())
	u.stop = cancel
	go func() {
		defer close(u.done)
		if err := u.sub.Run(ctx); err != nil {
			u.t.Error(err)
		}
	}()
	u.t.Cleanup(func() { u.end() })
}

func (u *user) handle(_ context.Context, ev reflector.Event) {
	if u.block != nil {
		<-u.block
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.events = append(u.events, ev.Type.String()+" "+ev.Ref().String())
	// Each event starts from the state that the previous one left: nothing is lost, nothing comes twice (rule 12).
	before := ""
	if ev.Old != nil {
		before = ev.Old.ResourceVersion()
	}
	if before != u.mirror[ev.Ref()] {
		u.t.Errorf("%s %s: old state is %q, the event before left %q", ev.Type, ev.Ref(), before, u.mirror[ev.Ref()])
	}
	if ev.Type == reflector.Deleted {
		delete(u.mirror, ev.Ref())
	} else {
		u.mirror[ev.Ref()] = ev.New.ResourceVersion()
	}
	u.last[ev.Ref()] = ev.New
}

// end stops the subscription and waits for it.
func (u *user) end() {
	u.stop()
	<-u.done
}

func (u *user) synced() bool {
	select {
	case <-u.sub.Synced():
		return true
	default:
		return false
	}
}

// expect compares the events since the last call, in any order, once all goroutines of the bubble are idle.
func (u *user) expect(want ...string) {
	u.t.Helper()
	synctest.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	got := slices.Sorted(slices.Values(u.events))
	u.events = nil
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		u.t.Errorf("events: %s", diff)
	}
}

// agrees checks that the events add up to the API's content, and to that of the store.
func (u *user) agrees(r *fakeResource) {
	u.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	want, store := map[reflector.ObjectRef]string{}, map[reflector.ObjectRef]string{}
	for name, o := range r.objects {
		want[reflector.ObjectRef{Namespace: "ns", Name: name}] = o.GetResourceVersion()
	}
	for _, o := range u.sub.Store().List() {
		store[o.Ref()] = o.ResourceVersion()
	}
	if diff := cmp.Diff(want, u.mirror); diff != "" {
		u.t.Errorf("events against the API: %s", diff)
	}
	if diff := cmp.Diff(want, store); diff != "" {
		u.t.Errorf("store against the API: %s", diff)
	}
}

func (u *user) phase(want watcher.Phase) {
	u.t.Helper()
	synctest.Wait()
	if st := u.sub.State(); st.Phase != want {
		u.t.Errorf("phase is %s (%s), want %s", st.Phase, st, want)
	}
}

// bed is the usual start: a set on a fake API, one subscription to configmaps.
type bed struct {
	api *fakeAPI
	cm  *fakeResource
	set *watcher.Set
	u   *user
}

// bubble runs f in a bubble of virtual time with a and b existing and one user
// that has seen them.
func bubble(t *testing.T, f func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{api: newFakeAPI()}
		b.cm = b.api.of(configMaps)
		b.cm.set("a", 1)
		b.cm.set("b", 1)
		b.set = b.api.set(watcher.Config{})
		b.u = subscribe(t, b.set, watcher.Source{Resource: configMaps})
		b.u.expect("Listed ns/a", "Listed ns/b")
		b.u.phase(watcher.Ready)
		if !b.u.synced() {
			t.Fatal("not synced")
		}
		if diff := cmp.Diff([]string{"stream "}, b.cm.took()); diff != "" {
			t.Fatalf("requests: %s", diff)
		}
		f(t, b)
		synctest.Wait()
		b.u.agrees(b.cm)
	})
}

// pass advances virtual time; it must be called in a bubble.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
}

// after advances virtual time and waits until all goroutines are idle.
func after(d time.Duration) {
	pass(d)
	synctest.Wait()
}

func resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: name}
}
