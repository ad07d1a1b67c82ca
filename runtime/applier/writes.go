package applier

import (
	"slices"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Bounds of the table of writes.
const (
	// maxAwaited is how many writes are remembered over all objects.
	maxAwaited = 1 << 16
	// maxAwaitedOfRun is how many are remembered of one run. Beyond it only the
	// newest of each resource and namespace is: a watch delivers writes in
	// order, so that the newest one implies all.
	maxAwaitedOfRun = 64
	// awaitedFor is how long a write is remembered that the cache does not get.
	awaitedFor = time.Minute
)

// writes remembers, per object, the writes of its last run that the cache did
// not have yet (rule 22).
type writes struct {
	mu      sync.Mutex
	byKey   map[abi.Key]awaited // guarded by mu
	total   int                 // guarded by mu: writes in byKey
	dropped uint64              // guarded by mu
	checked time.Time           // guarded by mu: when old ones were last looked for
}

type awaited struct {
	list  []abi.Write
	since time.Time // of the oldest
}

// take returns and forgets the writes that the next run of key has to wait for.
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

// put remembers the writes of a run. If there is no room, those that never
// arrived are forgotten, or else these are.
func (w *writes) put(key abi.Key, entry awaited, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey == nil {
		w.byKey = make(map[abi.Key]awaited)
	}
	if w.total+len(entry.list) > maxAwaited && now.Sub(w.checked) > awaitedFor/10 {
		w.checked = now
		w.dropOld(now)
	}
	if w.total+len(entry.list) > maxAwaited {
		w.dropped += uint64(len(entry.list))
		return
	}
	w.byKey[key] = entry
	w.total += len(entry.list)
}

// dropOld forgets what the cache has, most probably: objects that did not run
// again after they wrote. The caller holds mu.
func (w *writes) dropOld(now time.Time) {
	for key, entry := range w.byKey {
		if now.Sub(entry.since) > awaitedFor {
			delete(w.byKey, key)
			w.total -= len(entry.list)
		}
	}
}

func (w *writes) count() (total int, dropped uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.total, w.dropped
}

func (w *writes) of(key abi.Key) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byKey[key].list)
}

// addWrite adds a write to a list that has one per object, the newest last, and
// makes the list shorter where it is too long.
func addWrite(list []abi.Write, w *abi.Write) []abi.Write {
	kept := *w
	kept.Body = nil // valid for the time of the call only
	list = slices.DeleteFunc(list, func(old abi.Write) bool { return old.Key == w.Key && sameResource(&old, w) })
	if list = append(list, kept); len(list) <= maxAwaitedOfRun {
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
