// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"
	"time"

	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/applier/guard"
)

// Pauses until the next look at a unit.
const (
	soon       = guard.MinRequeue // it starts, or is swapped; a shorter pause would count as a hot loop
	onTrial    = time.Second      // a canary, probation, or a wait for the API server
	firstRetry = 2 * time.Second  // after a temporary problem
	mostRetry  = time.Minute
	quiet      = 30 * time.Second // for changes of ConfigMaps and Secrets
)

// pause returns the time until the next look at the unit.
func (u *unit) pause(in *seen) time.Duration {
	d := pauseAfter(in, u.failures)
	if u.source.follow > 0 {
		d = min(d, max(u.source.follow, onTrial))
	}
	return d
}

// pauseAfter returns the pause after an observation. failures is the number of consecutive problems.
func pauseAfter(in *seen, failures int) time.Duration {
	c := in.controller
	switch p := in.problem; {
	case p != nil && p.stalled || in.suspended:
		return mostRetry
	case p != nil:
		return min(mostRetry, firstRetry<<min(failures-1, 10))
	case c == nil || c.Phase == admin.PhaseLoading || c.Restarting:
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
	case slices.ContainsFunc(c.Webhooks, func(w admin.Webhook) bool { return w.Missing() }):
		return countEvery
	}
	return quiet
}
