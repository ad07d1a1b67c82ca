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
	// proven is the revision to roll back to, and window has its last runs. It is the live
	// revision or, while that is on probation, the one before. Guarded by mu.
	proven uint64
	window *probation.Window
	// trial is nil if the live revision is proven; guarded by mu.
	trial  *trialRuns
	canary *canaryFigures   // nil without a canary; guarded by mu
	failed []admin.Revision // the revisions that failed last; guarded by mu
	next   *admin.Revision  // the revision that is being prepared, or nil; guarded by mu
	shadow uint64           // the revision that shadows the live one, or 0; guarded by mu
}

// runCounts counts the runs of one revision.
type runCounts struct{ runs, errors uint64 }

// trialRuns are the runs of a revision on probation.
type trialRuns struct {
	*probation.Trial

	number uint64
	window *probation.Window // the baseline for its successor, if it passes
}

// canaryFigures are the figures of a canary, and those of the live revision during the same
// time.
type canaryFigures struct {
	trialRuns

	live *probation.Window
	on   *canaryRun
}

func (t *record) init(m *host.Module) {
	t.module, t.wake, t.counts = m, make(chan struct{}, 1), map[uint64]*runCounts{}
	t.proven, t.window = m.Revision(), probation.NewWindow()
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
	bad := out.Failed() || run.Loop
	switch {
	case t.canary != nil && t.canary.number == out.Revision:
		t.canary.End(run, time.Now())
		t.canary.window.Add(run)
		t.wakeUp(bad)
		return
	case t.trial != nil && t.trial.number == out.Revision:
		t.trial.End(run, time.Now())
		t.trial.window.Add(run)
		t.wakeUp(bad)
	case t.proven == out.Revision:
		t.window.Add(run)
	default:
		return // the revision drains
	}
	if t.canary != nil {
		t.canary.live.Add(run)
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
			t.window = probation.NewWindow()
		}
		return
	}
	t.trial = &trialRuns{
		Trial: probation.New(*cfg, t.window.Figures(), time.Now()), number: c.Number(), window: probation.NewWindow(),
	}
	t.trial.Excuse(t.window)
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
		beside := t.canary.live.Figures()
		if beside.Runs < minLive {
			beside = t.liveWindow().Figures()
		}
		t.canary.Compare(beside)
		canary.Verdict, canary.Reason = t.canary.Judge(now)
	}
	if t.trial != nil {
		live.Verdict, live.Reason = t.trial.Judge(now)
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
	t.proven, t.window, t.trial = t.trial.number, t.trial.window, nil
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
