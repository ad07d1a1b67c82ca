// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Runs returns the recorded runs of an object, the last one first.
func (r *Recorder) Runs(key abi.Key) []Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.objects.get(key); o != nil {
		return o.last()
	}
	return []Run{}
}

// Hidden returns the events of an object that were filtered out since it last ran.
func (r *Recorder) Hidden(key abi.Key) Hidden {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hidden[key]
}

// Running returns the runs whose guest has been called and that have not ended, the oldest
// first.
func (r *Recorder) Running() []Running {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Running, 0, len(r.running))
	for _, run := range r.running {
		copied := *run
		copied.Operations = slices.Clone(run.Operations)
		out = append(out, copied)
	}
	slices.SortFunc(out, func(a, b Running) int { return a.Since.Compare(b.Since) })
	return out
}

// LastFailure returns the last failed run, without its Deeds, and its object; false if no
// run has failed.
func (r *Recorder) LastFailure() (abi.Key, Run, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		return abi.Key{}, Run{}, false
	}
	return r.culprit, *r.failed, true
}

// Busy is an object and its load.
type Busy struct {
	Key  abi.Key
	Load Load
}

// Busiest returns the load of the controller, and the n objects that cause the most of it.
func (r *Recorder) Busiest(now time.Time, n int) (Load, []Busy) {
	r.mu.Lock()
	all := make([]Busy, 0, len(r.objects.byKey))
	for key := range r.objects.byKey {
		all = append(all, Busy{key, r.objects.get(key).load.read(now)})
	}
	total := r.total.read(now)
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b Busy) int { return cmp.Compare(b.Load.Busy, a.Load.Busy) })
	return total, all[:min(n, len(all))]
}

// Bytes returns the approximate memory use.
func (r *Recorder) Bytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects.size + r.states.size + r.related.size + r.denials.size
}
