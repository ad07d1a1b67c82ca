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

// Run is one run that has ended.
type Run struct {
	Key abi.Key
	// Failure is how it failed; empty for success.
	Failure abi.FailureKind
	// Loop says that the object was found to be in a hot loop.
	Loop bool
	// Took is how long the run took.
	Took time.Duration
}

// crashed reports whether the guest returned no result.
func (r *Run) crashed() bool { return r.Failure != "" && r.Failure != abi.FailureError }

// Figures count runs.
type Figures struct {
	// Runs counts all, Errors those that returned an error, Crashes those without
	// a result: traps, timeouts, too much memory, unreadable output.
	Runs, Errors, Crashes int
	// Timeouts are among the Crashes.
	Timeouts int
	// Loops counts objects that were found to be in a hot loop.
	Loops int
	// took counts runs by how long they took.
	took [buckets]int
}

// The buckets of durations: four to each doubling, from a microsecond.
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

// add counts a run, n times: -1 takes it out again.
func (f *Figures) add(r *Run, n int) {
	f.Runs += n
	switch {
	case r.Failure == abi.FailureError:
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

// Quantile returns a time that a share q of the runs did not exceed, a fifth too
// long at most; 0 without runs.
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

// rate is a share of the runs.
func (f *Figures) rate(n int) float64 {
	if f.Runs == 0 {
		return 0
	}
	return float64(n) / float64(f.Runs)
}

// windowSize is how many runs a Window has.
const windowSize = 1000

// Window has the figures of the last runs of a revision, so that what it did
// long ago does not hide how it does.
type Window struct {
	ring    []Run
	next    int
	figures Figures
}

// NewWindow returns a Window without runs.
func NewWindow() *Window { return &Window{} }

// Add counts a run, and forgets the oldest where there are too many.
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

// faults returns what was wrong with the last run of each object.
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
