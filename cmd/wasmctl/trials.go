package main

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/probation"
)

// What is remembered of generations that failed.
const (
	maxFailed = 10
	maxBad    = 100
)

// trials know how the generations of one module do: their runs, which one is on
// probation and which one it is compared with.
type trials struct {
	module *host.Module
	wake   chan struct{} // has room for one: the trial is to be judged

	mu     sync.Mutex
	counts map[uint64]*runCounts // by generation; guarded by mu
	// proven is the generation to go back to, and window its last runs: those of the
	// live one, or while that is on probation of the one before. Guarded by mu.
	proven uint64
	window *probation.Window
	// trial is nil where the live generation is proven; guarded by mu.
	trial  *trialRuns
	canary *canaryRuns        // nil without one; guarded by mu
	failed []admin.Generation // the last that failed; guarded by mu
	next   *admin.Generation  // what is being prepared, or nil; guarded by mu
	shadow uint64             // the generation that shadows the live one, or 0; guarded by mu
	bad    map[string]string  // why not to try it again, by digest; guarded by mu
}

// runCounts are the runs of one generation.
type runCounts struct{ runs, errors uint64 }

// trialRuns are those of a generation on probation.
type trialRuns struct {
	*probation.Trial

	number uint64
	digest string
	window *probation.Window // what it will be compared with, if it passes
}

// canaryRuns are those of a canary, and those of the live generation in the same
// time.
type canaryRuns struct {
	trialRuns

	live *probation.Window
	on   string // which objects it has, for people
}

func newTrials(m *host.Module) *trials {
	return &trials{
		module: m, wake: make(chan struct{}, 1), counts: map[uint64]*runCounts{}, bad: map[string]string{},
		proven: m.Generation(), window: probation.NewWindow(),
	}
}

// begin notes that a run has begun.
func (t *trials) begin(generation uint64, key abi.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trial != nil && t.trial.number == generation {
		t.trial.Begin(key, time.Now())
	}
	if t.canary != nil && t.canary.number == generation {
		t.canary.Begin(key, time.Now())
	}
}

// end counts a run that has ended.
func (t *trials) end(out *applier.Outcome) {
	if out.Generation == 0 {
		return
	}
	kind := failureOf(out)
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
	c := t.counts[out.Generation]
	if c == nil {
		c = &runCounts{}
		t.counts[out.Generation] = c
	}
	c.runs++
	if kind != "" {
		c.errors++
	}
	run := probation.Run{Key: out.Key, Failure: kind, Loop: out.Loop != nil, Took: out.Duration - out.Waited}
	bad := kind != "" || run.Loop
	switch {
	case t.canary != nil && t.canary.number == out.Generation:
		t.canary.End(run)
		t.canary.window.Add(run)
		t.rouse(bad)
		return
	case t.trial != nil && t.trial.number == out.Generation:
		t.trial.End(run)
		t.trial.window.Add(run)
		t.rouse(bad)
	case t.proven == out.Generation:
		t.window.Add(run)
	default:
		return // it drains
	}
	if t.canary != nil {
		t.canary.live.Add(run)
	}
}

// failureOf says how a run failed; empty where it did not.
func failureOf(out *applier.Outcome) abi.FailureKind {
	if !out.Failed() {
		return ""
	}
	if call, ok := errors.AsType[*abi.CallError](out.Err); ok {
		return call.Kind
	}
	return abi.FailureError
}

// rouse has the trial judged at once, after a bad run.
func (t *trials) rouse(bad bool) {
	if !bad {
		return
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// promoted says that a generation is live now: on probation, or with nil proven
// as it is.
func (t *trials) promoted(c *host.Candidate, cfg *probation.Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cfg == nil {
		t.trial, t.proven, t.window = nil, c.Number(), probation.NewWindow()
		return
	}
	t.trial = &trialRuns{
		Trial: probation.New(*cfg, t.window.Figures(), time.Now()), number: c.Number(), digest: c.Digest(), window: probation.NewWindow(),
	}
	t.trial.Excuse(t.window)
}

// judge says how the trial goes. A generation that passes is proven from now
// on.
func (t *trials) judge(now time.Time) (v probation.Verdict, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trial == nil {
		return probation.Pending, ""
	}
	v, reason = t.trial.Judge(now)
	if v == probation.Passed {
		delete(t.bad, t.trial.digest) // it was tried again, and does well
		t.proven, t.window, t.trial = t.trial.number, t.trial.window, nil
	}
	return v, reason
}

// failing reports whether the canary or the generation on probation is worse, as
// judge and judgeCanary would find. It decides nothing.
func (t *trials) failing(now time.Time) bool {
	if v, _ := t.judgeCanary(now); v == probation.Failed {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trial == nil {
		return false
	}
	v, _ := t.trial.Judge(now)
	return v == probation.Failed
}

// prepare notes that a module is being prepared; its digest is empty for an
// earlier one. The caller calls prepared once it is not any more.
func (t *trials) prepare(digest string) (prepared func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	outer := t.next // which goes on when this one is done
	prepared = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.next = outer
	}
	t.next = &admin.Generation{Digest: digest, State: string(host.GenerationLoading), Since: time.Now()}
	return prepared
}

// preparing reports whether the module with a digest is being prepared.
func (t *trials) preparing(digest string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.next != nil && t.next.Digest == digest
}

// waits notes what the module waits for that is being prepared.
func (t *trials) waits(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next != nil {
		t.next.Reason = why
	}
}

// shadows notes which generation shadows the live one; 0 is none.
func (t *trials) shadows(number uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shadow = number
}

// onTrial returns the generation on probation and the one before; false where
// there is none.
func (t *trials) onTrial() (number, proven uint64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trial == nil {
		return 0, t.proven, false
	}
	return t.trial.number, t.proven, true
}

// fail remembers that a generation is worse than the one before, and returns the
// window of that.
func (t *trials) fail(reason string) *probation.Window {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.bad) < maxBad {
		t.bad[t.trial.digest] = reason
	}
	g := admin.Generation{Number: t.trial.number, Digest: t.trial.digest, State: "failed", Since: time.Now(), Reason: reason}
	if c := t.counts[g.Number]; c != nil {
		g.Runs, g.Errors = c.runs, c.errors
	}
	t.remember(g)
	return t.window
}

// refused remembers a module that did not become live.
func (t *trials) refused(digest string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remember(admin.Generation{Digest: digest, State: "refused", Since: time.Now(), Reason: err.Error()})
}

// remember adds to what has failed; mu is held.
func (t *trials) remember(g admin.Generation) {
	t.failed = append(t.failed, g)
	t.failed = slices.Delete(t.failed, 0, max(0, len(t.failed)-maxFailed))
}

// resume compares with these runs: the generation that is live is the one that
// they are of, again.
func (t *trials) resume(w *probation.Window) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.window = w
}

// giveUp ends the trial of a generation that failed and cannot be replaced.
func (t *trials) giveUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.trial != nil {
		t.proven, t.window, t.trial = t.trial.number, t.trial.window, nil
	}
}

// badReason says why a digest is not to be tried again; "" where it may be.
func (t *trials) badReason(digest string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bad[digest]
}

// generations returns those that have something left and those that failed, in
// the order of their numbers, and last what has none: the one that is compiled,
// and those that were refused.
func (t *trials) generations() []admin.Generation {
	open := t.module.Generations()
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []admin.Generation
	next := t.next
	known := map[uint64]bool{}
	for _, g := range open {
		known[g.Number] = true
		if slices.ContainsFunc(t.failed, func(f admin.Generation) bool { return f.Number == g.Number }) {
			continue
		}
		st := admin.Generation{Number: g.Number, Digest: g.Digest, State: string(g.State), Since: g.Since, Kept: g.Kept}
		switch {
		case t.trial != nil && t.trial.number == g.Number:
			st.State = "probation"
		case t.canary != nil && t.canary.number == g.Number:
			st.State, st.Since, st.Canary = "canary", t.canary.Began(), t.canary.on
		case t.shadow == g.Number:
			st.State = "shadow"
		case g.State == host.GenerationLoading && next != nil:
			st.Reason, next = next.Reason, nil
		}
		if c := t.counts[g.Number]; c != nil {
			st.Runs, st.Errors = c.runs, c.errors
		}
		out = append(out, st)
	}
	for number := range t.counts {
		if !known[number] && number != t.proven {
			delete(t.counts, number)
		}
	}
	if next != nil {
		out = append(out, *next)
	}
	out = append(out, t.failed...)
	slices.SortStableFunc(out, func(a, b admin.Generation) int {
		if (a.Number == 0) != (b.Number == 0) {
			return int(b.Number) - int(a.Number) //nolint:gosec // small numbers
		}
		return int(a.Number) - int(b.Number) //nolint:gosec // small numbers
	})
	return out
}
