// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/internal/memapi"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// selected returns a source that differs from others in its selector only. The fake does not select.
func selected(i int) watcher.Source {
	return watcher.Source{Resource: configMaps, FieldSelector: fmt.Sprintf("metadata.name!=x%d", i)}
}

// Watches with different selectors that start at the same time have one copy of each object, and so they do after changes that all of them
// receive at the same time.
func TestSet_SelectorsShareObjects(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		var users []*user
		for i := range 50 {
			users = append(users, subscribe(t, b.set, selected(i)))
		}
		after(time.Minute)
		same := func() {
			t.Helper()
			for _, u := range users {
				u.agrees(b.cm)
				for _, o := range u.sub.Store().List() {
					if b.u.sub.Store().Get(o.Ref()) != o {
						t.Fatalf("%s has a copy of %s", u.sub.Source(), o.Ref())
					}
				}
			}
		}
		same()
		b.cm.set("a", 2)
		b.cm.set("c", 1)
		b.cm.remove("b")
		synctest.Wait()
		same()
		for _, u := range users { // those of one watch that ends remain
			u.end()
		}
		b.cm.set("a", 3)
	})
}

// A tenant is charged for one copy of each object, however many watches and identities it uses, and for nothing after their end.
func TestTenant_PaysOnceForEachObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		cm := api.of(configMaps)
		for i := range 25 {
			cm.set(fmt.Sprint("o", i), strings.Repeat("x", 10_000))
		}
		tenant := watcher.NewTenant(1<<20, 0, nil)
		var users []*user
		for range 2 {
			set := api.set(watcher.Config{Tenant: tenant})
			for i := range 25 {
				users = append(users, subscribe(t, set, selected(i)))
			}
		}
		after(time.Minute)
		for _, u := range users {
			u.phase(watcher.Ready)
			u.agrees(cm)
		}
		if n := tenant.Bytes(); n < 250_000 || n > 600_000 {
			t.Errorf("%d bytes, want those of 25 objects and 1250 entries", n)
		}
		for _, u := range users {
			u.end()
		}
		if n := tenant.Bytes(); n != 0 {
			t.Errorf("%d bytes are charged for nothing", n)
		}
	})
}

// A watch whose objects exceed the bound is refused, in a list and by a change, without an effect on the older watches of the tenant. It
// comes back when the objects fit, with each event in order.
func TestTenant_BoundRefusesWhatExceedsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		cm, others := api.of(configMaps), api.of(resource("others"))
		cm.set("a", strings.Repeat("x", 50_000))
		tenant := watcher.NewTenant(100_000, 0, nil)
		set := api.set(watcher.Config{Tenant: tenant})
		first := subscribe(t, set, watcher.Source{Resource: configMaps})
		first.expect("Listed ns/a")
		for i := range 2 {
			others.set(fmt.Sprint("o", i), strings.Repeat("y", 40_000))
		}
		second := subscribe(t, set, watcher.Source{Resource: resource("others")})
		after(time.Hour)
		second.phase(watcher.Refused)
		first.phase(watcher.Ready)
		if st := second.sub.State(); !strings.Contains(st.Message, "97.7Ki") || st.Stalled(time.Now()) {
			t.Errorf("%+v", st)
		}
		if n := tenant.Bytes(); n > 60_000 {
			t.Errorf("%d bytes for refused objects", n)
		}
		others.remove("o1")
		after(5 * time.Minute)
		second.phase(watcher.Ready)
		second.expect("Listed ns/o0")
		second.agrees(others)

		others.set("o2", strings.Repeat("z", 20_000)) // exceeds the bound
		others.remove("o0")
		after(time.Minute)
		cm.set("a", strings.Repeat("w", 50_000)) // needs no more
		after(5 * time.Minute)
		second.phase(watcher.Ready)
		first.phase(watcher.Ready)
		first.expect("Applied ns/a")
		second.expect("Deleted ns/o0", "Relisted ns/o2")
		first.agrees(cm)
		second.agrees(others)
	})
}

// The watches beyond the bound of their number wait until others end. Equal sources are one watch.
func TestTenant_BoundsTheNumberOfWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		cm := api.of(configMaps)
		cm.set("a", 1)
		set := api.set(watcher.Config{Tenant: watcher.NewTenant(0, 2, nil)})
		var users []*user
		for i := range 3 {
			users = append(users, subscribe(t, set, selected(i)))
			synctest.Wait()
		}
		again := subscribe(t, set, selected(0))
		after(time.Hour)
		again.phase(watcher.Ready)
		users[2].phase(watcher.Refused)
		if st := users[2].sub.State(); !strings.Contains(st.Message, "2 watches") || st.Stalled(time.Now()) {
			t.Errorf("%+v", st)
		}
		users[1].end()
		after(time.Minute)
		users[2].phase(watcher.Ready)
		users[2].expect("Listed ns/a")
		users[2].end()
		last := subscribe(t, set, selected(3))
		waiting := subscribe(t, set, selected(4))
		waiting.end()
		last.expect("Listed ns/a")
	})
}

// The objects that a list adds are bounded together with those that it does not replace, also if they come first in the list.
func TestTenant_AListDoesNotReplaceWhatItContains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memapi.New(memapi.Config{Untracked: true})
		client, err := watcher.NewClient(&rest.Config{Host: "http://in-memory", Transport: distant{server}})
		if err != nil {
			t.Fatal(err)
		}
		put := func(names ...string) {
			for _, name := range names {
				if err := server.Put(map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "ns", "name": name},
					"data": map[string]any{"k": strings.Repeat("x", 40_000)},
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
		tenant := watcher.NewTenant(100_000, 0, nil)
		put("z1", "z2")
		u := subscribe(t, watcher.NewSet(client, watcher.Config{Tenant: tenant}), watcher.Source{Resource: configMaps})
		after(time.Second)
		u.expect("Listed ns/z1", "Listed ns/z2")
		put("a1", "a2")
		for range 10 {
			after(time.Minute)
			u.phase(watcher.Refused)
		}
		u.expect()
		if n := tenant.Bytes(); n > 100_000 {
			t.Errorf("%d bytes, want no more than 100,000", n)
		}
	})
}

// process is the memory of a process with a limit; 0 is none.
type process struct{ limit, taken atomic.Int64 }

// Take implements watcher.Memory.
func (p *process) Take(n int64) error {
	if limit := p.limit.Load(); p.taken.Add(n) > limit && limit > 0 {
		p.taken.Add(-n)
		return errors.New("the budget is spent")
	}
	return nil
}

// Give implements watcher.Memory.
func (p *process) Give(n int64) { p.taken.Add(-n) }

// A watch is refused for as long as the process has no memory for its objects. A list that replaces all objects needs no more than they had. At
// the end, everything is given back.
func TestTenant_ObjectsTakeMemoryOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		cm := api.of(configMaps)
		fill := func(fill string) {
			for i := range 40 {
				cm.set(fmt.Sprint("o", i), strings.Repeat(fill, 100_000))
			}
		}
		fill("x")
		var memory process
		memory.limit.Store(2 << 20)
		u := subscribe(t, api.set(watcher.Config{Tenant: watcher.NewTenant(0, 0, &memory)}), watcher.Source{Resource: configMaps})
		after(time.Hour)
		u.phase(watcher.Refused)
		if st := u.sub.State(); !strings.Contains(st.Message, "the budget is spent") || memory.taken.Load() > 2<<20 {
			t.Errorf("%+v, %d bytes", st, memory.taken.Load())
		}
		memory.limit.Store(4 << 20)
		after(5 * time.Minute)
		u.phase(watcher.Ready)
		cm.failWith(errRefused)
		cm.compact()
		cm.cut()
		fill("y")
		cm.failWith(nil)
		after(5 * time.Minute)
		u.phase(watcher.Ready)
		u.agrees(cm)
		if n := memory.taken.Load(); n != 4<<20 {
			t.Errorf("%d bytes are taken", n)
		}
		u.end()
		if n := memory.taken.Load(); n != 0 {
			t.Errorf("%d bytes are not given back", n)
		}
	})
}
