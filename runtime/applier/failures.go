package applier

import (
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// failures counts failed runs in a row per object (rule 18: runs, not
// triggers). It holds only objects whose last run failed.
type failures struct {
	mu    sync.Mutex
	byKey map[abi.Key]failed // guarded by mu
}

type failed struct {
	runs  int
	first time.Time
}

// attempt returns the number of the next run.
func (f *failures) attempt(key abi.Key) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byKey[key].runs + 1
}

// record counts a run that failed at now and returns when the first of the
// failed runs in a row ended.
func (f *failures) record(key abi.Key, now time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byKey == nil {
		f.byKey = make(map[abi.Key]failed)
	}
	e := f.byKey[key]
	if e.runs == 0 {
		e.first = now
	}
	e.runs++
	f.byKey[key] = e
	return e.first
}

// forget ends the row of failures.
func (f *failures) forget(key abi.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byKey, key)
}
