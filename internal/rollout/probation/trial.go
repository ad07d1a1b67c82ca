// SPDX-License-Identifier: Apache-2.0

package probation

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

const (
	// minBad is the minimum number of objects that a module must treat worse before it
	// fails; if there are fewer objects, all of them.
	minBad = 3
	// minRuns is the number of runs that both revisions need before their durations are
	// compared.
	minRuns = 20
	// slack is the additional time that a run may always take, because all objects are
	// reconciled at once after a swap.
	slack = 100 * time.Millisecond
	// maxObjects bounds the table of objects.
	maxObjects = 4096
)

// Verdict is the result of a Trial.
type Verdict string

// The verdicts.
const (
	Pending Verdict = "pending" // the time is not over
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
)

// Trial is the probation of one revision. It is not safe for concurrent use.
type Trial struct {
	cfg       Config
	before    Figures
	startedAt time.Time
	firstRun  time.Time // when the time begins; zero before
	idle      bool      // there was nothing to run: the trial passes without runs
	calls     bool      // the runs are calls of webhooks
	figures   Figures
	running   map[abi.Key]time.Time
	// objects has the faults of each object that was run.
	objects map[abi.Key]fault
	// known has the faults that objects had before: they do not count against this
	// revision.
	known map[abi.Key]fault
	bad   [faults]int // the number of objects by fault that is not known
	old   [faults]int // the number of objects that were run and whose fault is known
}

// fault is a set of the ways in which runs of an object failed.
type fault uint8

const (
	errored = fault(1 << iota)
	crashed
	looped
	faults = iota
)

// New returns the trial of a revision that became live at startedAt, after a revision with
// the figures before.
func New(cfg Config, before Figures, startedAt time.Time) *Trial {
	return &Trial{
		cfg: cfg.withDefaults(), before: before, startedAt: startedAt,
		running: map[abi.Key]time.Time{}, objects: map[abi.Key]fault{},
	}
}

// Excuse ignores faults that the last runs of the previous revision had with the same
// objects. It must be called before the first run.
func (t *Trial) Excuse(before *Window) { t.known = before.faults() }

// Compare replaces the figures that the revision is compared with. A canary needs this
// because its predecessor goes on running.
func (t *Trial) Compare(before Figures) { t.before = before }

// Figures returns the figures of the runs that have ended.
func (t *Trial) Figures() Figures { return t.figures }

// StartedAt returns the time at which the trial began.
func (t *Trial) StartedAt() time.Time { return t.startedAt }

// NothingToRun records that there are no objects: the time begins now, and the trial passes
// if no object appears in this time.
func (t *Trial) NothingToRun(now time.Time) {
	if t.firstRun.IsZero() {
		t.firstRun, t.idle = now, true
	}
}

// Begin records that a run has begun.
func (t *Trial) Begin(key abi.Key, now time.Time) {
	if t.firstRun.IsZero() {
		t.firstRun = now
	}
	t.running[key] = now
}

// End counts a run that has ended. Begin may not have been called for it: a guest may have
// failed to start, or the run may have begun before the trial.
func (t *Trial) End(r Run, now time.Time) {
	if t.firstRun.IsZero() {
		t.firstRun = now
	}
	delete(t.running, r.Key)
	t.figures.add(&r, 1)
	seen, known := t.objects[r.Key]
	all := seen | r.faults()
	if t.calls = r.Call; known || len(t.objects) < maxObjects {
		t.objects[r.Key] = all
	} else if !r.Call {
		return
	}
	excused := t.known[r.Key]
	for i := range t.bad {
		switch f := fault(1 << i); {
		case excused&f != 0 && !known:
			t.old[i]++
		case excused&f == 0 && all&f != 0 && seen&f == 0:
			t.bad[i]++
		}
	}
}

// faults returns the faults of a run.
func (r *Run) faults() (f fault) {
	switch {
	case r.errored():
		f |= errored
	case r.crashed():
		f |= crashed
	}
	if r.Loop {
		f |= looped
	}
	return f
}

// Forget removes a run that was interrupted and therefore says nothing about the module.
func (t *Trial) Forget(key abi.Key) {
	if delete(t.running, key); len(t.running) == 0 && t.figures.Runs == 0 && !t.idle {
		t.firstRun = time.Time{}
	}
}

// Judge returns the verdict on the revision, and the reason if it failed.
func (t *Trial) Judge(now time.Time) (v Verdict, reason string) {
	if reason := t.Worse(now); reason != "" {
		return Failed, reason
	}
	if end := t.firstRun.Add(t.cfg.Time); t.figures.Runs == 0 && !t.idle || now.Before(end) || t.runsFrom(end) {
		return Pending, ""
	}
	return Passed, ""
}

// Worse returns the reason why the revision does worse than its predecessor, or an empty string.
func (t *Trial) Worse(now time.Time) (reason string) {
	for _, worse := range []func(time.Time) string{t.crashes, t.stalls, t.errors, t.loops, t.slow} {
		if reason = worse(now); reason != "" {
			break
		}
	}
	return reason
}

// text returns the text for calls of webhooks, or that for runs.
func (t *Trial) text(calls, runs string) string {
	if t.calls {
		return calls
	}
	return runs
}

// runsFrom reports whether a run that began before a time has not ended: its result counts
// too.
func (t *Trial) runsFrom(before time.Time) bool {
	for _, started := range t.running {
		if started.Before(before) {
			return true
		}
	}
	return false
}

// enough reports whether at least minBad objects have a new fault, or all objects if there
// are fewer.
func (t *Trial) enough(f fault) bool {
	i := bits.TrailingZeros8(uint8(f))
	return t.bad[i] > 0 && t.bad[i] >= min(minBad, len(t.objects)-t.old[i])
}

// more reports whether n runs are more than the share before and the allowed bound explain,
// with three standard deviations for chance.
func (t *Trial) more(n int, before, bound float64) bool {
	runs := float64(t.figures.Runs)
	return n >= minBad && float64(n) > runs*(before+bound)+3*math.Sqrt(runs*before*(1-before))
}

func (t *Trial) crashes(time.Time) string {
	rate, before := t.figures.rate(t.figures.Crashes), t.before.rate(t.before.Crashes)
	if !t.enough(crashed) || !t.more(t.figures.Crashes, before, t.cfg.Crashes) {
		return ""
	}
	return fmt.Sprintf("%d of %d %s (%.0f%%, before %.0f%%)",
		t.figures.Crashes, t.figures.Runs, t.text("calls of webhooks failed", "runs trapped, exceeded time or memory, or returned invalid output"), 100*rate, 100*before)
}

func (t *Trial) errors(time.Time) string {
	rate, before := t.figures.rate(t.figures.Errors), t.before.rate(t.before.Errors)
	if !t.enough(errored) || !t.more(t.figures.Errors, before, t.cfg.Errors) {
		return ""
	}
	return fmt.Sprintf("%d of %d %s (%.0f%%, before %.0f%%)", t.figures.Errors, t.figures.Runs,
		t.text("requests were denied by a webhook", "runs returned an error"), 100*rate, 100*before)
}

func (t *Trial) loops(time.Time) string {
	if !t.enough(looped) || !t.more(t.figures.Loops, t.before.rate(t.before.Loops), 0) {
		return ""
	}
	return fmt.Sprintf("%d objects are in a hot loop", t.bad[2])
}

// slow compares the durations of nine of ten runs.
func (t *Trial) slow(time.Time) string {
	if t.figures.Runs < minRuns || t.before.Runs < minRuns {
		return ""
	}
	took, before := t.figures.Quantile(0.9), t.before.Quantile(0.9)
	if float64(took) <= t.cfg.Slowdown*float64(before)+float64(slack) {
		return ""
	}
	return fmt.Sprintf("90%% of runs take up to %v, before %v", took.Round(time.Millisecond), before.Round(time.Millisecond))
}

// stalls checks for runs that take far longer than any run of the previous revision. It
// finds them before their timeout does.
func (t *Trial) stalls(now time.Time) string {
	if slowest := t.before.Quantile(1); slowest == 0 || slowest > t.cfg.Stall/2 {
		return ""
	}
	n := 0
	for _, started := range t.running {
		if now.Sub(started) >= t.cfg.Stall {
			n++
		}
	}
	if n < minBad && (n == 0 || t.figures.Runs > 0 || n < len(t.running)) {
		return ""
	}
	return fmt.Sprintf("%d runs have not ended after %v, longer than any run before", n, t.cfg.Stall)
}
