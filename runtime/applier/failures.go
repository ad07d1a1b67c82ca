// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"maps"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// maxFailing is the maximum number of objects in the table of failures. If the table is full, a new object displaces another one, which
// starts again with attempt 1.
const maxFailing = 1 << 17

// failures counts consecutive failed runs per object (rule 18: runs, not triggers). It contains only objects whose last run failed.
type failures struct {
	mu    sync.Mutex
	byKey map[abi.Key]failed // guarded by mu
}

type failed struct {
	runs      int
	conflicts int // how many of the most recent consecutive runs were conflicts
	first     time.Time
}

// get returns the failures of an object.
func (f *failures) get(key abi.Key) failed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byKey[key]
}

func (f *failures) len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byKey)
}

// record counts a run that failed at now and returns the updated failures.
func (f *failures) record(key abi.Key, now time.Time, e *abi.ResultError) failed {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byKey == nil {
		f.byKey = make(map[abi.Key]failed)
	}
	row, known := f.byKey[key]
	if !known {
		f.makeRoom()
		row.first = now
	}
	row.runs++
	if row.conflicts++; e.Class != abi.ErrorConflict {
		row.conflicts = 0
	}
	f.byKey[key] = row
	return row
}

// Row summarizes consecutive failed runs: their number, and when the first one ended.
type Row struct {
	Runs  int
	First time.Time
}

// Failing yields the objects whose last run failed.
func (a *Applier) Failing(yield func(key abi.Key, row Row) bool) {
	a.failures.mu.Lock()
	byKey := maps.Clone(a.failures.byKey)
	a.failures.mu.Unlock()
	for key, row := range byKey {
		if !yield(key, Row{row.runs, row.first}) {
			return
		}
	}
}

// Restore adds the failed runs of an object that another replica has recorded.
func (a *Applier) Restore(key abi.Key, row Row) {
	f := &a.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byKey == nil {
		f.byKey = make(map[abi.Key]failed)
	}
	f.makeRoom()
	f.byKey[key] = failed{runs: row.Runs, first: row.First}
}

// Forget removes the failed runs and the hot loop of an object that another replica has taken over.
func (a *Applier) Forget(key abi.Key) {
	a.failures.forget(key)
	a.guard.Forget(key)
}

// makeRoom removes an object if the table is full. The caller must hold mu.
func (f *failures) makeRoom() {
	for key := range f.byKey {
		if len(f.byKey) < maxFailing {
			return
		}
		delete(f.byKey, key)
	}
}

// forget removes an object.
func (f *failures) forget(key abi.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byKey, key)
}
