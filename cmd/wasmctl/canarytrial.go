package main

import (
	"time"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/probation"
)

// minLive is how many runs of the live generation, beside the canary, its
// figures are taken from; where there are fewer, its runs before count too.
const minLive = 20

// try says that a candidate runs some of the objects from now on. The words say
// which.
func (t *trials) try(c *host.Candidate, cfg probation.Config, on string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.canary = &canaryRuns{
		trialRuns: trialRuns{
			Trial: probation.New(cfg, probation.Figures{}, time.Now()), number: c.Number(), digest: c.Digest(), window: probation.NewWindow(),
		},
		live: probation.NewWindow(), on: on,
	}
	t.canary.Excuse(t.liveWindow())
}

// liveWindow is that of the generation that is live; mu is held.
func (t *trials) liveWindow() *probation.Window {
	if t.trial != nil {
		return t.trial.window
	}
	return t.window
}

// judgeCanary says how the canary does beside the live generation. One without
// runs has not shown anything.
func (t *trials) judgeCanary(now time.Time) (v probation.Verdict, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.canary == nil {
		return probation.Pending, ""
	}
	beside := t.canary.live.Figures()
	if beside.Runs < minLive {
		beside = t.liveWindow().Figures()
	}
	t.canary.Compare(beside)
	v, reason = t.canary.Judge(now)
	if own := t.canary.Figures(); v == probation.Passed && own.Runs == 0 {
		return probation.Pending, ""
	}
	return v, reason
}

// tried says that the canary is over: promoted, without words, or ended. One
// that failed is not tried again.
func (t *trials) tried(how, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.canary
	if t.canary = nil; how == "" {
		return
	}
	g := admin.Generation{Number: c.number, Digest: c.digest, State: how, Since: time.Now(), Reason: reason}
	if n := t.counts[g.Number]; n != nil {
		g.Runs, g.Errors = n.runs, n.errors
	}
	if how == canaryFailed && len(t.bad) < maxBad {
		t.bad[c.digest] = reason
	}
	t.remember(g)
}
