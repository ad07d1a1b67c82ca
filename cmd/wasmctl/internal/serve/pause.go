package serve

import (
	"time"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// How soon a unit is looked at again.
const (
	soon       = 200 * time.Millisecond // it starts, or is swapped
	onTrial    = time.Second            // a canary, or probation
	firstRetry = 2 * time.Second        // after a problem that may pass
	mostRetry  = time.Minute
	quiet      = 30 * time.Second // figures, and what the spec names in ConfigMaps and Secrets
)

// pause is for how long the unit is left alone.
func (u *unit) pause(in *seen) time.Duration {
	if p := in.problem; p != nil {
		if p.stalled {
			return mostRetry
		}
		return min(mostRetry, firstRetry<<min(u.failures-1, 10))
	}
	switch c := in.controller; {
	case in.suspended:
		return mostRetry
	case c == nil || c.Phase != admin.PhaseRunning || in.wanted != nil && c.Digest != in.wanted.Digest:
		return soon
	default:
		for _, r := range c.Revisions {
			if r.State == "loading" || r.State == "canary" || r.State == "probation" {
				return onTrial
			}
		}
		for _, w := range c.Watches {
			if w.Phase != "ready" {
				return soon
			}
		}
	}
	return quiet
}
