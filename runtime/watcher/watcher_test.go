// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Rule 12: changes come in order, after the list.
func TestWatch_ListsThenFollows(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		b.cm.set("c", 1)
		b.u.expect("Applied ns/c")
		b.cm.set("a", 2)
		b.u.expect("Applied ns/a")
		b.cm.remove("b")
		b.u.expect("Deleted ns/b")
		if got := b.cm.took(); len(got) != 0 {
			t.Errorf("requests for changes: %v", got)
		}
	})
}

// An API server that does not stream lists is asked for a plain one at once.
func TestWatch_FallsBackToListWithoutDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		cm := api.of(configMaps)
		cm.set("a", 1)
		cm.failWith(errNoStreams, "stream")
		start := time.Now()
		u := subscribe(t, api.set(watcher.Config{}), watcher.Source{Resource: configMaps})
		<-u.sub.Synced()
		u.expect("Listed ns/a")
		u.phase(watcher.Ready)
		if d := time.Since(start); d > 0 {
			t.Errorf("synced after %s", d)
		}
		if diff := cmp.Diff([]string{"stream ", "list 0", "watch 11"}, cm.took()); diff != "" {
			t.Error(diff)
		}
		cm.set("a", 2)
		u.expect("Applied ns/a")
		u.agrees(cm)
	})
}

// Rule 12: a watch that ends is resumed at once where it was; changes that happened meanwhile are not lost, nothing is
// listed, and the user is not notified.
func TestWatch_ResumesAtLastResourceVersion(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		after(4 * time.Minute)
		b.cm.set("c", 1) // 13
		synctest.Wait()
		b.cm.cut()
		b.cm.set("d", 1)
		b.u.expect("Applied ns/c", "Applied ns/d")
		if diff := cmp.Diff([]string{"watch 13", "version"}, b.cm.took()); diff != "" {
			t.Error(diff)
		}
		b.u.phase(watcher.Ready)
	})
}

// Rule 12: a bookmark advances the version at which to resume.
func TestWatch_ResumesAtBookmark(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		b.cm.mu.Lock()
		b.cm.rv = 99 // other resources moved the counter
		b.cm.mu.Unlock()
		b.cm.sendBookmark()
		after(time.Minute)
		b.cm.cut()
		synctest.Wait()
		if diff := cmp.Diff([]string{"watch 99", "version"}, b.cm.took()); diff != "" {
			t.Error(diff)
		}
	})
}

// Rules 11 and 12: 410 leads to a new list, of which only the differences become events.
func TestWatch_ExpiredRelistsAndEmitsDifferences(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		after(time.Minute)
		b.cm.set("c", 1)
		b.u.expect("Applied ns/c")
		b.cm.failWith(errRefused)
		b.cm.cut()
		b.cm.set("a", 2)
		b.cm.remove("b")
		b.cm.remove("c")
		b.cm.set("c", 1) // another uid
		b.cm.set("d", 1)
		b.cm.compact()
		b.cm.failWith(nil)
		after(10 * time.Second)
		b.u.expect("Relisted ns/a", "Deleted ns/b", "Deleted ns/c", "Relisted ns/c", "Relisted ns/d")
		b.u.phase(watcher.Ready)
	})
}

// Rule 12: a list that is itself answered with 410 is requested without a resourceVersion at once.
func TestWatch_ExpiredListIsAskedForAgainAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		after(time.Minute)
		b.cm.failWith(errNoStreams, "stream")
		b.cm.mu.Lock()
		b.cm.listsExpire = true
		b.cm.mu.Unlock()
		b.cm.compact()
		b.cm.cut()
		synctest.Wait()
		b.cm.set("c", 1)
		after(1700 * time.Millisecond) // the only delay, after the watch's own 410
		b.u.expect("Relisted ns/c")
		b.u.phase(watcher.Ready)
	})
}

// Rule 11: a truncated list changes nothing; objects that had not arrived are not considered deleted.
func TestWatch_ListThatIsCutOffChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		after(time.Minute)
		b.cm.mu.Lock()
		b.cm.cutLists = true
		b.cm.mu.Unlock()
		b.cm.compact()
		b.cm.cut()
		after(20 * time.Second)
		b.u.expect()
		b.u.phase(watcher.Failing)
		if n := b.u.sub.Store().Len(); n != 2 {
			t.Errorf("store has %d objects, want the 2 from before", n)
		}
		if n := len(b.cm.took()); n < 3 || n > 10 {
			t.Errorf("%d requests in 20 s, want 3 to 10", n)
		}
		b.cm.mu.Lock()
		b.cm.cutLists = false
		b.cm.mu.Unlock()
		after(time.Minute)
		b.u.expect()
		b.u.phase(watcher.Ready)
	})
}

// Rule 11: a relist without changes triggers nothing, and unchanged objects keep their identity.
func TestWatch_RelistOfUnchangedTriggersNothing(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		before := b.u.sub.Store().List()
		for range 5 {
			after(time.Minute)
			b.cm.compact()
			b.cm.cut()
			b.u.phase(watcher.Ready) // 410 is no failure
			after(10 * time.Second)
		}
		b.u.expect()
		relists := 0
		for _, r := range b.cm.took() {
			if strings.HasPrefix(r, "stream") {
				relists++
			}
		}
		if relists != 5 {
			t.Errorf("%d relists, want 5", relists)
		}
		for _, o := range before {
			if b.u.sub.Store().Get(o.Ref()) != o {
				t.Errorf("%s was replaced by its copy", o.Ref())
			}
		}
	})
}

// Rule 12: 429 waits and resumes; it does not relist.
func TestWatch_TooManyRequestsDoesNotRelist(t *testing.T) { testNoRelist(t, errBusy) }

// Rule 12: the same applies to an API server that is unavailable for a while.
func TestWatch_ConnectionRefusedDoesNotRelist(t *testing.T) { testNoRelist(t, errRefused) }

func testNoRelist(t *testing.T, fault error) {
	t.Helper()
	bubble(t, func(t *testing.T, b *bed) {
		after(3 * time.Minute)
		b.cm.failWith(fault)
		b.cm.cut()
		b.u.phase(watcher.Failing)
		if st := b.u.sub.State(); st.Err == nil || st.Failures == 0 || !strings.Contains(st.String(), fault.Error()) {
			t.Errorf("state: %+v", st)
		}
		b.cm.set("c", 1)
		after(10 * time.Second)
		b.cm.failWith(nil)
		after(30 * time.Second)
		b.u.expect("Applied ns/c")
		b.u.phase(watcher.Ready)
		requests := b.cm.took()
		if slices.ContainsFunc(requests, func(r string) bool { return r != "watch 12" && r != "version" }) || len(requests) < 3 {
			t.Errorf("requests: %v, want only resumed watches", requests)
		}
	})
}

// Rule 13: the back-off is that of client-go: 0.8 s, doubling to 30 s, plus up to 100 percent of jitter, and restarting
// every two minutes and after a watch that lasted 10 s.
func TestWatch_BacksOff(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		for range 2 {
			after(15 * time.Second)
			b.cm.failWith(errRefused)
			b.cm.cut()
			synctest.Wait()
			b.cm.took()
			after(1700 * time.Millisecond)
			if n := len(b.cm.took()); n != 1 {
				t.Errorf("%d requests in the first 1.7 s, want 1", n)
			}
			after(10 * time.Minute)
			if n := len(b.cm.took()); n < 15 || n > 45 {
				t.Errorf("%d requests in ten minutes of outage, want 15 to 45", n)
			}
			b.cm.failWith(nil)
			for b.cm.open() == 0 {
				after(time.Second)
			}
		}
	})
}

// The back-off can be configured: a minute of outage, with delays of 5 to 10 s.
func TestWatch_BacksOffAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		r := api.of(configMaps)
		r.failWith(errRefused)
		u := subscribe(t, api.set(watcher.Config{Backoff: watcher.Backoff{First: 5 * time.Second, Max: 5 * time.Second}}), watcher.Source{Resource: configMaps})
		synctest.Wait()
		r.took()
		after(time.Minute)
		if n := len(r.took()); n < 6 || n > 12 {
			t.Errorf("%d requests in a minute of outage, want 6 to 12", n)
		}
		u.end()
	})
	for b, possible := range map[watcher.Backoff]bool{
		{}: true, {First: time.Millisecond}: true, {Max: 100 * time.Millisecond}: true, {First: 40 * time.Second}: true, {First: time.Second, Max: time.Minute}: true,
		{First: -1}: false, {Max: -1}: false, {First: 2, Max: 1}: false, {Max: time.Hour}: false, {First: time.Hour}: false,
	} {
		if err := b.Check(); (err == nil) != possible {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

// Rule 12: an API server that has discarded the version during an outage is listed soon after it answers again, and no
// more often than others if it discards each.
func TestWatch_ExpiredEndsAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		after(15 * time.Second)
		b.cm.failWith(errRefused)
		b.cm.cut()
		after(time.Minute)
		b.cm.failWith(nil)
		b.cm.compact()
		b.cm.set("new", 1)
		b.cm.took()
		for len(b.cm.took()) == 0 {
			after(100 * time.Millisecond)
		}
		after(1700 * time.Millisecond)
		b.u.expect("Relisted ns/new")
		b.cm.failWith(expiredError)
		b.cm.cut()
		b.cm.took()
		after(10 * time.Minute)
		if n := len(b.cm.took()); n > 90 {
			t.Errorf("%d requests in ten minutes", n)
		}
	})
}

// If an API server, or a proxy before it, ends each watch at once, the watch does not retry in a tight loop.
func TestWatch_ShortWatchesBackOff(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		after(3 * time.Minute)
		b.cm.mu.Lock()
		b.cm.closeAtOnce = true
		b.cm.mu.Unlock()
		b.cm.cut()
		b.u.phase(watcher.Failing)
		after(10 * time.Minute)
		if n := len(b.cm.took()); n > 80 {
			t.Errorf("%d requests in ten minutes", n)
		}
		b.cm.mu.Lock()
		b.cm.closeAtOnce = false
		b.cm.mu.Unlock()
		after(2 * time.Minute)
		b.u.phase(watcher.Ready)
		b.u.expect()
	})
}

// An object that cannot be packed is skipped; the others arrive.
func TestWatch_LeavesOutObjectsThatCannotBePacked(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		b.cm.set("deep", deep())
		b.cm.set("c", 1)
		b.u.expect("Applied ns/c")
		b.cm.remove("deep")
		b.u.expect()
	})
}

// An object that can no longer be packed is neither lost nor considered deleted, through an event or a list; its
// deletion is seen.
func TestWatch_ObjectThatCannotBePackedKeepsItsLastState(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		b.cm.set("a", deep())
		b.u.expect()
		after(time.Minute)
		b.cm.compact()
		b.cm.cut()
		after(10 * time.Second)
		b.u.expect()
		b.u.phase(watcher.Ready)
		if n := b.u.sub.Store().Len(); n != 2 {
			t.Errorf("the store has %d objects, want 2", n)
		}
		b.cm.remove("a")
		b.u.expect("Deleted ns/a")
	})
}

// deep is a value that nests too deep to cross the sandbox boundary.
func deep() any {
	v := any("x")
	for range abi.MaxDepth + 1 {
		v = []any{v}
	}
	return v
}

// Rule 13: one failing watch does not delay others.
func TestWatch_FailingWatchDelaysNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		for i, fault := range []error{errRefused, errForbidden, errNotFound, errInternal} {
			gvr := resource(fmt.Sprint("broken", i))
			b.api.of(gvr).failWith(fault)
			subscribe(t, b.set, watcher.Source{Resource: gvr})
		}
		for i := range 50 {
			after(time.Second)
			b.cm.set("a", i+2)
			b.u.expect("Applied ns/a") // in the same virtual instant
		}
	})
}

// A stop does not wait for a back-off, even at the worst moment: before the first list, with the API server down.
func TestWatch_StopsAtOnceWhileBackingOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		api.of(configMaps).failWith(errRefused)
		u := subscribe(t, api.set(watcher.Config{}), watcher.Source{Resource: configMaps})
		after(10 * time.Minute)
		start := time.Now()
		u.end()
		if d := time.Since(start); d > 0 {
			t.Errorf("stop took %s", d)
		}
		if u.synced() {
			t.Error("synced without a list")
		}
	})
}
