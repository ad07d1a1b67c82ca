// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"slices"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Bounds of the table of writes.
const (
	// maxAwaited is the maximum number of writes, over all objects.
	maxAwaited = 1 << 16
	// maxAwaitedOfRun is the maximum number of writes of one run. If there are more, only the newest of each resource and namespace is
	// remembered: a watch delivers writes in order, so the newest one implies all others.
	maxAwaitedOfRun = 64
	// awaitedFor is how long a write that does not reach the cache is remembered.
	awaitedFor = time.Minute
)

// writes remembers, per object, the writes of its last run that the cache did not include yet (rule 22).
type writes struct {
	mu      sync.Mutex
	byKey   map[abi.Key]awaited // guarded by mu
	total   int                 // guarded by mu: writes in byKey
	checked time.Time           // guarded by mu: when old entries were last removed
}

type awaited struct {
	list  []abi.Write
	since time.Time // of the oldest
}

// take removes and returns the writes that the next run of key must wait for.
func (w *writes) take(key abi.Key) awaited {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry, ok := w.byKey[key]
	if ok {
		delete(w.byKey, key)
		w.total -= len(entry.list)
	}
	return entry
}

// put stores the writes of a run. If there is no room, it first removes those that have never arrived; if there is still no room, it
// ignores the new ones.
func (w *writes) put(key abi.Key, entry awaited, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey == nil {
		w.byKey = make(map[abi.Key]awaited)
	}
	if w.total+len(entry.list) > maxAwaited && now.Sub(w.checked) > awaitedFor/10 {
		w.checked = now
		w.removeOld(now)
	}
	if w.total+len(entry.list) > maxAwaited {
		return
	}
	w.byKey[key] = entry
	w.total += len(entry.list)
}

// removeOld removes old entries: objects that did not run again after they wrote, so that the cache probably includes the writes. The
// caller must hold mu.
func (w *writes) removeOld(now time.Time) {
	for key, entry := range w.byKey {
		if now.Sub(entry.since) > awaitedFor {
			delete(w.byKey, key)
			w.total -= len(entry.list)
		}
	}
}

// addWrite appends a write to a list that has one write per object, the newest last, and shortens the list if it is too long.
func addWrite(list []abi.Write, w *abi.Write) []abi.Write {
	stored := *w
	stored.Body = nil // valid only during the call
	list = slices.DeleteFunc(list, func(old abi.Write) bool { return old.Key == w.Key && sameResource(&old, w) })
	if list = append(list, stored); len(list) <= maxAwaitedOfRun {
		return list
	}
	newest := list[:0]
	for i := range list {
		newer := func(later abi.Write) bool {
			return later.Key.Namespace == list[i].Key.Namespace && sameResource(&later, &list[i])
		}
		if !slices.ContainsFunc(list[i+1:], newer) {
			newest = append(newest, list[i])
		}
	}
	return newest[max(0, len(newest)-maxAwaitedOfRun):]
}

func sameResource(a, b *abi.Write) bool { return a.Resource == b.Resource && a.Group == b.Group }
