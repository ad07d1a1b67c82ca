package serve

import (
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// How soon a unit is looked at again.
const (
	soon       = 200 * time.Millisecond // it starts, or is swapped
	onTrial    = time.Second            // a canary, probation, or a wait for the API server
	firstRetry = 2 * time.Second        // after a problem that may pass
	mostRetry  = time.Minute
	quiet      = 30 * time.Second // figures, and what the spec names in ConfigMaps and Secrets
)

// pause is for how long the unit is left alone.
func (u *unit) pause(in *seen) time.Duration {
	d := pauseAfter(in, u.failures)
	if u.source.follow > 0 {
		d = min(d, max(u.source.follow, onTrial))
	}
	return d
}

// pauseAfter is pause for what has been seen, after so many problems in a row.
func pauseAfter(in *seen, failures int) time.Duration {
	c := in.controller
	switch p := in.problem; {
	case p != nil && p.stalled || in.suspended:
		return mostRetry
	case p != nil:
		return min(mostRetry, firstRetry<<min(failures-1, 10))
	case c == nil || c.Phase == admin.PhaseLoading:
		return soon
	case c.Phase != admin.PhaseRunning:
		return onTrial
	case in.shadow != nil || in.auditing:
		return onTrial
	case slices.ContainsFunc(c.Watches, func(w admin.Watch) bool { return w.Phase != "ready" }):
		return onTrial
	case slices.ContainsFunc(c.Revisions, func(r admin.Revision) bool {
		return slices.Contains([]string{"loading", "canary", "probation"}, r.State)
	}):
		return onTrial
	case in.wanted != nil && c.Digest != in.wanted.Digest && refused(nil, in) == nil:
		return soon
	}
	return quiet
}
