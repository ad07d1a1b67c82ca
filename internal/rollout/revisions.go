// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/internal/rollout/probation"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// minLive is the minimum number of runs of the live revision to compare a canary with. With
// fewer runs since the canary started, earlier runs count too.
const minLive = 20

// startCanary records that a candidate runs some of the objects.
func (t *record) startCanary(cfg probation.Config, k *canaryRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.canary = &canaryFigures{
		trialRuns: newTrial(cfg, k.Number(), t.liveWindows()), live: newWindows(), on: k,
	}
}

// enough returns the figures of the live revision since the canary started, or, if there are too
// few runs, its last figures.
func enough(live, earlier *probation.Window) probation.Figures {
	if f := live.Figures(); f.Runs >= minLive {
		return f
	}
	return earlier.Figures()
}

// liveWindows returns the windows of the live revision. The caller holds mu.
func (t *record) liveWindows() windows {
	if t.trial != nil {
		return t.trial.windows
	}
	return t.windows
}

// canaryEnded records the end of the canary. The result is empty if it was promoted.
func (t *record) canaryEnded(result, reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.canary
	if t.canary = nil; result == "" {
		return
	}
	t.remember(admin.Revision{Number: c.number, Digest: c.on.Digest(), State: result, Reason: reason})
}

// prepare records that a module is being prepared; its digest is empty for an earlier
// revision. The caller must call prepared when the preparation has ended.
func (t *record) prepare(digest string) (prepared func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = &admin.Revision{Digest: digest, State: string(host.RevisionLoading), Since: time.Now()}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.next = nil
	}
}

// Waits records the reason why the preparation waits.
func (t *record) Waits(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next != nil {
		t.next.Reason = why
	}
}

// Shadows records which revision shadows the live one; 0 means none.
func (t *record) Shadows(number uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shadow = number
}

// Revisions returns the revisions that still hold resources and those that failed, ordered
// by number. Revisions without a number come last: the one that is being compiled, and
// those that were refused.
func (t *record) Revisions() []admin.Revision {
	open := t.module.Revisions()
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []admin.Revision
	next := t.next
	known := map[uint64]bool{}
	for _, rev := range open {
		known[rev.Number] = true
		if slices.ContainsFunc(t.failed, func(f admin.Revision) bool { return f.Number == rev.Number }) {
			continue
		}
		st := admin.Revision{Number: rev.Number, Digest: rev.Digest, State: string(rev.State), Since: rev.Since, Kept: rev.Kept}
		switch {
		case t.trial != nil && t.trial.number == rev.Number:
			st.State = "probation"
			if f := t.trial.Figures(); f.Runs == 0 {
				st.Reason = "waiting for its first run"
			}
		case t.canary != nil && t.canary.number == rev.Number:
			st.State, st.Since, st.Canary = "canary", t.canary.StartedAt(), t.canary.on.String()
		case t.shadow == rev.Number:
			st.State = "shadow"
		case rev.State == host.RevisionLoading && next != nil:
			st.Reason, next = next.Reason, nil
		}
		if c := t.counts[rev.Number]; c != nil {
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
	slices.SortStableFunc(out, func(a, b admin.Revision) int {
		if (a.Number == 0) != (b.Number == 0) {
			return int(b.Number) - int(a.Number) //nolint:gosec // small numbers
		}
		return int(a.Number) - int(b.Number) //nolint:gosec // small numbers
	})
	return out
}
