// SPDX-License-Identifier: Apache-2.0

// Package probation judges a new revision of a module by its runs, against those of
// the revision before: is it worse than the bound? It is pure: time and runs are
// arguments, and the owner of a Trial queries it.
//
//	before := probation.NewWindow()          // of the runs of the revision that is live
//	trial := probation.New(cfg, before.Figures(), time.Now())
//	trial.Begin(key, time.Now())             // for each run of the new one
//	trial.End(run, time.Now())
//	verdict := trial.Judge(time.Now())       // from time to time
package probation

import (
	"math"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Run is a run that has ended, or a call of a webhook. One Trial or Window has only runs or only
// calls.
type Run struct {
	Key abi.Key
	// Failure is the kind of failure; empty if the run succeeded.
	Failure abi.FailureKind
	// Loop reports whether the object was found to be in a hot loop.
	Loop bool
	// Took is the duration of the run.
	Took time.Duration
	// Call marks a call of a webhook. Denied reports that it denied a request.
	Call, Denied bool
}

// errored reports whether the guest returned an error, or denied a request.
func (r *Run) errored() bool { return r.Denied || !r.Call && r.Failure == abi.FailureError }

// crashed reports whether the guest returned no result. An error is no result of a webhook.
func (r *Run) crashed() bool { return r.Failure != "" && (r.Call || r.Failure != abi.FailureError) }

// Figures count runs.
type Figures struct {
	// Runs counts all runs, Errors those that returned an error or denied a request, and Crashes
	// those without a result: traps, timeouts, too much memory, unreadable output.
	Runs, Errors, Crashes int
	// Timeouts counts the Crashes that were timeouts.
	Timeouts int
	// Loops counts objects that were found to be in a hot loop.
	Loops int
	// took counts runs by duration.
	took [buckets]int
}

// The buckets of durations: four for each doubling, from one microsecond.
const (
	perDoubling = 4
	buckets     = 40 * perDoubling
)

func bucketOf(d time.Duration) int {
	if d <= time.Microsecond {
		return 0
	}
	return min(buckets-1, int(perDoubling*math.Log2(float64(d)/float64(time.Microsecond))))
}

// add counts a run n times; -1 removes it.
func (f *Figures) add(r *Run, n int) {
	f.Runs += n
	switch {
	case r.errored():
		f.Errors += n
	case r.crashed():
		f.Crashes += n
	}
	if r.Failure == abi.FailureTimeout {
		f.Timeouts += n
	}
	if r.Loop {
		f.Loops += n
	}
	f.took[bucketOf(r.Took)] += n
}

// Quantile returns a duration that a share q of the runs did not exceed. It is too long by
// at most a fifth; without runs it is 0.
func (f *Figures) Quantile(q float64) time.Duration {
	rest := int(math.Ceil(q * float64(f.Runs)))
	if rest == 0 {
		return 0
	}
	for i, n := range f.took {
		if rest -= n; rest <= 0 {
			return time.Duration(math.Exp2(float64(i+1)/perDoubling) * float64(time.Microsecond))
		}
	}
	return math.MaxInt64
}

// rate returns n as a share of the runs.
func (f *Figures) rate(n int) float64 {
	if f.Runs == 0 {
		return 0
	}
	return float64(n) / float64(f.Runs)
}

// windowSize is the number of runs in a Window.
const windowSize = 1000

// Window has the figures of the last runs of a revision. Older runs do not count, so that
// they do not hide its current state.
type Window struct {
	ring    []Run
	next    int
	figures Figures
}

// NewWindow returns a Window without runs.
func NewWindow() *Window { return &Window{} }

// Add counts a run; if the window is full, it forgets the oldest run.
func (w *Window) Add(r Run) {
	if len(w.ring) < windowSize {
		w.ring = append(w.ring, r)
	} else {
		w.figures.add(&w.ring[w.next], -1)
		w.ring[w.next] = r
		w.next = (w.next + 1) % windowSize
	}
	w.figures.add(&r, 1)
}

// faults returns the faults of the last run of each object.
func (w *Window) faults() map[abi.Key]fault {
	last := map[abi.Key]fault{}
	for i := range w.ring {
		r := &w.ring[(w.next+i)%len(w.ring)] // the oldest first
		if f := r.faults(); f != 0 {
			last[r.Key] = f
		} else {
			delete(last, r.Key)
		}
	}
	return last
}

// Figures returns the figures of the last runs.
func (w *Window) Figures() Figures { return w.figures }
