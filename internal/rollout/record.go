// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/rollout/probation"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/applier"
)

// maxFailed bounds the number of failed revisions that are shown.
const maxFailed = 10

// record has the results of the revisions of one module: their runs, the revision on
// probation, and the revision that it is compared with. It is safe for concurrent use.
type record struct {
	module *host.Module
	wake   chan struct{} // has a buffer of one: the trial must be judged

	mu     sync.Mutex
	counts map[uint64]*runCounts // by revision; guarded by mu
	// proven is the revision to roll back to, and windows have its last runs and calls. It is the
	// live revision or, while that is on probation, the one before. Guarded by mu.
	proven  uint64
	windows windows
	// trial is nil if the live revision is proven; guarded by mu.
	trial  *trialRuns
	canary *canaryFigures   // nil without a canary; guarded by mu
	failed []admin.Revision // the revisions that failed last; guarded by mu
	next   *admin.Revision  // the revision that is being prepared, or nil; guarded by mu
	shadow uint64           // the revision that shadows the live one, or 0; guarded by mu
}

// runCounts counts the runs of one revision.
type runCounts struct{ runs, errors uint64 }

// windows have the last runs of a revision, and its last calls of webhooks.
type windows struct{ runs, calls *probation.Window }

func newWindows() windows { return windows{probation.NewWindow(), probation.NewWindow()} }

// trialRuns are the runs of a revision on probation, and its calls of webhooks.
type trialRuns struct {
	*probation.Trial

	calls   *probation.Trial
	number  uint64
	windows windows // the baseline for its successor, if it passes
}

// newTrial returns the trial of a revision after one with these windows.
func newTrial(cfg probation.Config, number uint64, before windows) trialRuns {
	t := trialRuns{
		Trial: probation.New(cfg, before.runs.Figures(), time.Now()), calls: probation.New(cfg, before.calls.Figures(), time.Now()),
		number: number, windows: newWindows(),
	}
	t.Excuse(before.runs)
	t.calls.Excuse(before.calls)
	return t
}

// judge returns the verdict. Calls of webhooks need not occur for a revision to pass.
func (t *trialRuns) judge(now time.Time) (v life.Verdict) {
	if v.Reason = t.calls.Worse(now); v.Reason != "" {
		v.Verdict = probation.Failed
		return v
	}
	v.Verdict, v.Reason = t.Judge(now)
	return v
}

// end counts a run or a call.
func (t *trialRuns) end(run probation.Run) {
	if run.Call {
		t.calls.End(run, time.Now())
	} else {
		t.End(run, time.Now())
	}
	t.windows.add(run)
}

// add counts a run or a call.
func (w *windows) add(run probation.Run) {
	if run.Call {
		w.calls.Add(run)
	} else {
		w.runs.Add(run)
	}
}

// canaryFigures are the figures of a canary, and those of the live revision during the same
// time.
type canaryFigures struct {
	trialRuns

	live windows
	on   *canaryRun
}

func (t *record) init(m *host.Module) {
	t.module, t.wake, t.counts = m, make(chan struct{}, 1), map[uint64]*runCounts{}
	t.proven, t.windows = m.Revision(), newWindows()
}

// Started records that a run has begun.
func (t *record) Started(revision uint64, key abi.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trial != nil && t.trial.number == revision {
		t.trial.Begin(key, time.Now())
	}
	if t.canary != nil && t.canary.number == revision {
		t.canary.Begin(key, time.Now())
	}
}

// end counts a run that has ended.
func (t *record) end(out *applier.Outcome) {
	if out.Revision == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(out.Err, applier.ErrInterrupted) {
		if t.trial != nil {
			t.trial.Forget(out.Key)
		}
		if t.canary != nil {
			t.canary.Forget(out.Key)
		}
		return
	}
	c := t.counts[out.Revision]
	if c == nil {
		c = &runCounts{}
		t.counts[out.Revision] = c
	}
	c.runs++
	if out.Failed() {
		c.errors++
	}
	run := probation.Run{Key: out.Key, Failure: out.Failure, Loop: out.Loop != nil, Took: out.Duration - out.Waited}
	t.judged(out.Revision, run, out.Failed() || run.Loop)
}

// called counts a call of a webhook that has ended.
func (t *record) called(revision uint64, call probation.Run) {
	call.Call = true
	t.mu.Lock()
	defer t.mu.Unlock()
	t.judged(revision, call, call.Denied || call.Failure != "")
}

// judged counts a run or a call of a webhook for the verdicts. The caller holds mu.
func (t *record) judged(revision uint64, run probation.Run, bad bool) {
	switch {
	case t.canary != nil && t.canary.number == revision:
		t.canary.end(run)
		t.wakeUp(bad)
		return
	case t.trial != nil && t.trial.number == revision:
		t.trial.end(run)
		t.wakeUp(bad)
	case t.proven == revision:
		t.windows.add(run)
	default:
		return // the revision drains
	}
	if t.canary != nil {
		t.canary.live.add(run)
	}
}

// wakeUp requests an immediate judgment after a bad run.
func (t *record) wakeUp(bad bool) {
	if !bad {
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// promoted records that a revision is live: on probation, or proven if cfg is nil. With
// back, it is the revision whose runs the window already has.
func (t *record) promoted(c *host.Candidate, cfg *probation.Config, back bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cfg == nil {
		t.trial, t.proven = nil, c.Number()
		if !back {
			t.windows = newWindows()
		}
		return
	}
	trial := newTrial(*cfg, c.Number(), t.windows)
	t.trial = &trial
}

// nothingToRun starts the time of the trial although there is no object to run.
func (t *record) nothingToRun(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trial != nil {
		t.trial.NothingToRun(now)
	}
}

// verdicts returns the verdicts on the canary and on the revision on probation. It changes
// no state.
func (t *record) verdicts(now time.Time) (canary, live life.Verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	canary.Verdict, live.Verdict = probation.Pending, probation.Pending
	if t.canary != nil {
		live, earlier := t.canary.live, t.liveWindows()
		t.canary.Compare(enough(live.runs, earlier.runs))
		t.canary.calls.Compare(enough(live.calls, earlier.calls))
		canary = t.canary.judge(now)
	}
	if t.trial != nil {
		live = t.trial.judge(now)
	}
	return canary, live
}

// pass ends the trial, if there is one: its revision becomes the one to roll back to.
func (t *record) pass() (number uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trial == nil {
		return 0, false
	}
	t.proven, t.windows, t.trial = t.trial.number, t.trial.windows, nil
	return t.proven, true
}

// onTrial reports whether a revision is on probation, and returns the last proven one.
func (t *record) onTrial() (proven uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trial == nil {
		return t.proven, false
	}
	return t.proven, true
}

// fail records that the revision on probation does worse than its predecessor.
func (t *record) fail(reason string) {
	digest := t.module.Digest()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remember(admin.Revision{Number: t.trial.number, Digest: digest, State: "failed", Reason: reason})
}

// Refuse records a module that did not become live.
func (t *record) Refuse(digest string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remember(admin.Revision{Digest: digest, State: "refused", Reason: err.Error()})
}

// remember adds a failed revision, with its runs. The caller holds mu.
func (t *record) remember(rev admin.Revision) {
	rev.Since = time.Now()
	if c := t.counts[rev.Number]; c != nil {
		rev.Runs, rev.Errors = c.runs, c.errors
	}
	t.failed = append(t.failed, rev)
	t.failed = slices.Delete(t.failed, 0, max(0, len(t.failed)-maxFailed))
}
