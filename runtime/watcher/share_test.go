// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Rule 16, for the watch: a handler that blocks delays its own watch and no other, and a stop does not wait for it.
func TestSet_BlockedHandlerHoldsUpNoOtherWatch(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		b.api.of(resource("slow")).set("x", 1)
		sub := b.set.Acquire(watcher.Source{Resource: resource("slow")},
			func(ctx context.Context, _ reflector.Event) { <-ctx.Done() })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- sub.Run(ctx) }()
		after(time.Hour)
		select {
		case <-sub.Synced():
			t.Error("synced although the first event was not handled")
		default:
		}
		b.cm.set("c", 1)
		b.u.expect("Applied ns/c")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if b.api.of(resource("slow")).open() != 0 {
			t.Error("the watch did not stop")
		}
	})
}

// Rule 16: users of one watch do not wait for a blocked one: they get every event at once, no further request is sent
// to the API server, and new users join. The blocked one has little more to catch up with than there are objects, and
// misses nothing.
func TestSet_BlockedHandlerHoldsUpNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		source := watcher.Source{Resource: configMaps}
		blocked := make(chan struct{})
		slow := newUser(t)
		slow.block = blocked
		slow.subscribe(b.set, source)
		synctest.Wait()
		for i := range 1000 {
			b.cm.set("a", i+2)
			b.u.expect("Applied ns/a")
		}
		b.cm.remove("b")
		b.cm.set("c", 1)
		b.u.expect("Deleted ns/b", "Applied ns/c")
		subscribe(t, b.set, source).expect("Listed ns/a", "Listed ns/c")
		if got := b.cm.took(); len(got) != 0 {
			t.Errorf("requests: %v", got)
		}
		if n := slow.sub.Waiting(); n > 6 || slow.synced() {
			t.Errorf("%d events wait for the blocked user, synced %t", n, slow.synced())
		}
		close(blocked)
		slow.expect("Listed ns/a", "Listed ns/b", "Applied ns/a", "Deleted ns/b", "Applied ns/c")
		slow.agrees(b.cm)
		if n := slow.sub.Waiting(); n != 0 || !slow.synced() {
			t.Errorf("%d events wait, synced %t", n, slow.synced())
		}
	})
}

// Rule 15: two users share one copy of each object.
func TestSet_UsersShareObjects(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		second := subscribe(t, b.set, watcher.Source{Resource: configMaps, Kind: "does not count without Metadata"})
		b.cm.set("a", 2)
		synctest.Wait()
		for _, o := range b.u.sub.Store().List() {
			if o != second.sub.Store().Get(o.Ref()) || o != b.u.last[o.Ref()] || o != second.last[o.Ref()] {
				t.Errorf("%s: the users have different copies", o.Ref())
			}
		}
	})
}

// A user that replaces one watch with another does not affect the others, and one that comes back gets a new list.
func TestSet_ExchangingWatchesLeavesOthersAlone(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		other := b.api.of(resource("other"))
		other.set("x", 1)
		selected := watcher.Source{Resource: configMaps, LabelSelector: "a=b"}
		for range 3 {
			first := subscribe(t, b.set, watcher.Source{Resource: resource("other")})
			first.expect("Listed ns/x")
			second := subscribe(t, b.set, selected) // the fake does not select
			first.end()
			second.expect("Listed ns/a", "Listed ns/b")
			second.end()
			if got := b.cm.took(); len(got) != 1 || b.cm.open() != 1 || other.open() != 0 {
				t.Errorf("requests %v, open %d and %d", got, b.cm.open(), other.open())
			}
		}
		if got := other.took(); len(got) != 3 {
			t.Errorf("requests for the other: %v, want 3 lists", got)
		}
		b.cm.set("c", 1)
		b.u.expect("Applied ns/c")
	})
}

// With Metadata, the store contains metadata and the given kind, although the server sent more; nothing else differs.
func TestSet_MetadataOnly(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		u := subscribe(t, b.set, watcher.Source{Resource: configMaps, Metadata: true, Kind: "ConfigMap"})
		u.expect("Listed ns/a", "Listed ns/b")
		b.cm.set("c", 1)
		b.cm.remove("b")
		u.expect("Applied ns/c", "Deleted ns/b")
		for _, o := range u.sub.Store().List() {
			got, err := abi.DecodeObject(o.Msgpack())
			if err != nil {
				t.Fatal(err)
			}
			delete(got, "metadata")
			if diff := cmp.Diff(map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, got); diff != "" {
				t.Error(diff)
			}
		}
		u.agrees(b.cm)
		if n := len(b.set.States()); n != 2 {
			t.Errorf("%d watches, want that of the metadata and the other", n)
		}
	})
}
