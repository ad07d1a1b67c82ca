// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Rule 15: users of one source share one watch, which stops when the last one is gone.
func TestSet_WatchesAreSharedAndCounted(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		source := watcher.Source{Resource: configMaps}
		second := subscribe(t, b.set, source)
		second.expect("Listed ns/a", "Listed ns/b")
		if !second.synced() || second.sub.Store() != b.u.sub.Store() {
			t.Error("the second user is not synced, or has a store of its own")
		}
		b.cm.set("c", 1)
		second.expect("Applied ns/c")
		b.u.expect("Applied ns/c")
		if got := b.cm.took(); len(got) != 0 {
			t.Errorf("requests for the second user: %v", got)
		}

		second.end()
		b.cm.set("c", 2)
		b.u.expect("Applied ns/c")
		second.expect()
		if n := b.cm.open(); n != 1 {
			t.Errorf("%d open watches, want 1", n)
		}
		b.u.end()
		if n, states := b.cm.open(), b.set.States(); n != 0 || len(states) != 0 {
			t.Errorf("%d open watches, states %v after the last user has gone", n, states)
		}

		again := subscribe(t, b.set, source)
		again.expect("Listed ns/a", "Listed ns/b", "Listed ns/c")
		if again.sub.Store() == b.u.sub.Store() {
			t.Error("a new watch has the store of the old one")
		}
	})
}

// Rule 15: sources that differ in any field do not share.
func TestSet_OtherSourcesHaveTheirOwnWatch(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		for i, source := range []watcher.Source{
			{Resource: configMaps, Namespace: "ns"},
			{Resource: configMaps, LabelSelector: "a=b"},
			{Resource: configMaps, FieldSelector: "metadata.name=a"},
			{Resource: configMaps, ManagedFields: true},
			{Resource: configMaps, Metadata: true},
		} {
			subscribe(t, b.set, source)
			synctest.Wait()
			if n := b.cm.open(); n != i+2 {
				t.Errorf("%d open watches after %s, want %d", n, source, i+2)
			}
		}
		if n := len(b.set.States()); n != 6 {
			t.Errorf("%d states, want 6", n)
		}
	})
}

// Rule 15: adding and removing watches does not affect the others.
func TestSet_AddingAndRemovingLeavesOthersAlone(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		for i := range 20 {
			u := subscribe(t, b.set, watcher.Source{Resource: resource(fmt.Sprint("r", i))})
			b.cm.set("a", i+2)
			b.u.expect("Applied ns/a")
			u.end()
			b.cm.set("b", i+2)
			b.u.expect("Applied ns/b")
		}
		if got := b.cm.took(); len(got) != 0 {
			t.Errorf("requests: %v", got)
		}
	})
}

// Rule 10: Synced is closed after the handler has returned for the last object of the first list, not before.
func TestSubscription_SyncedAfterTheLastListedEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		for i := range 10 {
			api.of(configMaps).set(fmt.Sprint("n", i), 1)
		}
		handled := 0
		sub := api.set(watcher.Config{}).Acquire(watcher.Source{Resource: configMaps},
			func(context.Context, reflector.Event) {
				pass(time.Second)
				handled++
			})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = sub.Run(ctx) })
		<-sub.Synced()
		if handled != 10 {
			t.Errorf("synced after %d of 10 objects", handled)
		}
		cancel()
		running.Wait()
	})
}

// The last Run returns only when the requests of the watch have ended, although
// client-go's reflector does not wait for its lists.
func TestSubscription_RunWaitsForItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.of(configMaps).failWith(errNoStreams, "stream")
		api.of(configMaps).hang = time.Minute
		u := subscribe(t, api.set(watcher.Config{}), watcher.Source{Resource: configMaps})
		synctest.Wait()
		start := time.Now()
		u.end()
		if d := time.Since(start); d != time.Minute {
			t.Errorf("stopped after %s, the list request ended after a minute", d)
		}
		u.phase(watcher.Syncing) // being stopped is not a failure
	})
}

func TestSubscription_RunsOnceAndReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := newFakeAPI().set(watcher.Config{})
		source := watcher.Source{Resource: configMaps}
		u := subscribe(t, set, source)
		synctest.Wait()
		if err := u.sub.Run(t.Context()); err == nil {
			t.Error("a second Run must fail")
		}
		u.sub.Release() // nothing while it runs
		unused := set.Acquire(source, nil)
		unused.Release()
		unused.Release()
		if err := unused.Run(t.Context()); err == nil {
			t.Error("Run after Release must fail")
		}
		if len(set.States()) != 1 {
			t.Errorf("states: %v, want the one watch that runs", set.States())
		}
		u.end()
		if len(set.States()) != 0 {
			t.Errorf("states: %v, want none", set.States())
		}
	})
}

// Rules 12 and 15: users that come and go while everything changes and watches fail see each object from Listed on
// without a gap or a repetition (user.handle checks each event against the previous one), and end with the API's
// content.
func TestSet_NothingLostOrDoubledForUsersThatComeAndGo(t *testing.T) {
	for seed := range uint64(60) {
		bubble(t, func(t *testing.T, b *bed) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			users := []*user{b.u}
			for range 200 {
				switch rnd.IntN(34) {
				case 0, 1:
					users = append(users, subscribe(t, b.set, watcher.Source{Resource: configMaps}))
				case 2:
					i := rnd.IntN(len(users))
					if users[i] != b.u {
						users[i].end()
						users = append(users[:i], users[i+1:]...)
					}
				case 3:
					b.cm.cut()
				case 4:
					b.cm.compact()
				case 5:
					faults := []error{errRefused, errInternal, errBusy, errForbidden, errNotFound, expiredError, nil}
					b.cm.failWith(faults[rnd.IntN(len(faults))])
				case 6:
					pass(time.Duration(rnd.IntN(90)) * time.Second)
				case 7:
					b.cm.lose()
				case 8:
					b.cm.mu.Lock()
					b.cm.cutLists, b.cm.listsExpire, b.cm.closeAtOnce = rnd.IntN(3) == 0, rnd.IntN(3) == 0, rnd.IntN(3) == 0
					b.cm.mu.Unlock()
				case 9:
					b.cm.failWith(errNoStreams, "stream")
				default:
					randomChange(b.cm, rnd)
				}
			}
			b.cm.failWith(nil)
			b.cm.mu.Lock()
			b.cm.cutLists, b.cm.listsExpire, b.cm.closeAtOnce = false, false, false
			b.cm.mu.Unlock()
			after(12 * time.Minute) // a dead watch is abandoned after 10.5 minutes at most
			for _, u := range users {
				u.agrees(b.cm)
			}
		})
	}
}

func randomChange(r *fakeResource, rnd *rand.Rand) {
	name := fmt.Sprint("n", rnd.IntN(8))
	r.mu.Lock()
	known := r.objects[name] != nil
	r.mu.Unlock()
	if known && rnd.IntN(3) == 0 {
		r.remove(name)
	} else {
		r.set(name, rnd.Int64())
	}
}

// With real goroutines, under the race detector: users come and go while the content changes, with concurrent readers.
func TestSet_Hammer(t *testing.T) {
	api := newFakeAPI()
	set := api.set(watcher.Config{OnChange: func(watcher.Source, watcher.State) {}})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range 4 {
		running.Go(func() {
			for j := 0; ctx.Err() == nil; j++ {
				useOnce(ctx, set, watcher.Source{Resource: resource(fmt.Sprint("r", (i+j)%2))})
			}
		})
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		r := api.of(resource(fmt.Sprint("r", rnd.IntN(2))))
		if randomChange(r, rnd); rnd.IntN(100) == 0 {
			r.cut()
		}
		set.States()
	}
	cancel()
	running.Wait()
	if n := len(set.States()); n != 0 {
		t.Errorf("%d watches are left", n)
	}
	for _, name := range []string{"r0", "r1"} {
		if n := api.of(resource(name)).open(); n != 0 {
			t.Errorf("%s: %d open watches are left", name, n)
		}
	}
}

// useOnce subscribes until synced, reads, and leaves.
func useOnce(ctx context.Context, set *watcher.Set, source watcher.Source) {
	ctx, cancel := context.WithCancel(ctx)
	sub := set.Acquire(source, func(context.Context, reflector.Event) {})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = sub.Run(ctx)
	}()
	select {
	case <-sub.Synced():
	case <-ctx.Done():
	}
	sub.State()
	sub.Store().List()
	cancel()
	<-done
}
