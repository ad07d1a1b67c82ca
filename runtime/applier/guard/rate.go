// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// MinRequeue is the shortest delay that runs may ask for without end. Shorter delays, and none, make a rate that the guard limits.
const MinRequeue = 250 * time.Millisecond

// MaxAsking is the maximum number of objects whose rates are counted. Any other object gets a floor of Config.MinDelay from its first
// request on.
const MaxAsking = 1 << 17

// rate is the state of an object whose runs ask for the next one almost at once: to continue, or to retry after an error. The zero value
// is that of any other object.
type rate struct {
	runs  int           // consecutive runs that asked
	floor time.Duration // the last floor
	cause Cause         // of the last run
	seen  time.Time     // when the last run ended
}

// end returns the rate after one more run, and the decision. A run that makes progress, or that something else caused, starts a new
// sequence; a run that asks for nothing, or for a later time, ends it.
func (r rate) end(cfg Config, e *End, progress bool) (rate, Decision) {
	if e.Host {
		r.seen = e.Time
		return r, Decision{}
	}
	wasHot := r.hot(cfg)
	if progress || !e.asks() {
		r = rate{}
	}
	if !e.asks() {
		return r, Decision{Closed: wasHot}
	}
	r.runs, r.seen, r.cause = r.runs+1, e.Time, CauseRequeue
	if e.Failed {
		r.cause = CauseRetry
	}
	r.floor = cfg.floor(r.runs, e.Action.After)
	return r, Decision{Floor: r.floor, Opened: r.runs == cfg.Runs, Closed: wasHot && !r.hot(cfg), Runs: r.runs, Cause: r.cause}
}

// hot reports whether the object is in a hot loop.
func (r rate) hot(cfg Config) bool { return r.runs >= cfg.Runs }

// asks reports whether the run asked for the next one almost at once.
func (e *End) asks() bool { return e.Action.Requeue && e.Action.After < MinRequeue && !e.Host }

// floor returns the earliest start of the run that consecutive runs asked for, after the end of the last one. It is zero for the first
// runs, so that a sequence of some steps stays fast. Then it doubles with each run, and is MinDelay in the run that makes a hot loop. Runs
// that ask for a run at once are slowed further, up to MaxDelay; those that ask for a short delay are not.
func (c Config) floor(runs int, asked time.Duration) time.Duration {
	limit := c.MaxDelay
	if asked > 0 {
		limit = c.MinDelay
	}
	floor := c.MinDelay
	if runs < c.Runs {
		floor >>= c.Runs - runs
	}
	for ; runs > c.Runs && floor < limit; runs-- {
		floor *= 2
	}
	if floor < time.Millisecond {
		return 0
	}
	return min(floor, limit)
}

// pace updates the rate of an object after a run. The caller must hold mu.
func (g *Guard) pace(key abi.Key, e *End, progress bool) Decision {
	old, known := g.rates[key]
	r, d := old.end(g.cfg, e, progress)
	switch {
	case r.runs == 0:
		delete(g.rates, key)
	case !known && !g.room(e.Time):
		return Decision{Floor: g.cfg.MinDelay}
	default:
		g.rates[key] = r
	}
	return d
}

// room reports whether there is room for one more rate. If not, it removes those of objects that no longer run here, from time to time. The
// caller must hold mu.
func (g *Guard) room(now time.Time) bool {
	if len(g.rates) < MaxAsking || now.Sub(g.swept) < g.cfg.MaxDelay {
		return len(g.rates) < MaxAsking
	}
	g.swept = now
	for key, r := range g.rates {
		if now.Sub(r.seen) > 2*g.cfg.MaxDelay {
			delete(g.rates, key)
		}
	}
	return len(g.rates) < MaxAsking
}
