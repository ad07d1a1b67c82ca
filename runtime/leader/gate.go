// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrLapsed is the reason for refusing writes while the lease is not renewed in time. It is known not to be lost: if no other replica has
// taken it, the next renewal extends it.
var ErrLapsed = errors.New("the lease could not be renewed in time: nothing is written until it is renewed")

// Gate controls whether this replica may write. It opens when the lease is acquired. If the lease is not renewed in time, it closes until the
// next renewal succeeds. Close closes it permanently.
type Gate struct {
	// Exit makes a lease that was not renewed in time count as lost. It must be set before the gate is used.
	Exit bool

	validity time.Duration // the time after a renewal at which writes must have stopped
	open     chan struct{}
	final    context.Context //nolint:containedctx // canceled by Close
	end      context.CancelCauseFunc

	mu     sync.Mutex
	timer  *time.Timer             // guarded by mu; nil before the lease is acquired; closes the gate
	until  time.Time               // guarded by mu; when timer fires
	period context.Context         //nolint:containedctx // guarded by mu; see Period
	lapse  context.CancelCauseFunc // guarded by mu; ends period
	valid  chan struct{}           // guarded by mu; closed while this replica may write
}

// NewGate returns a Gate that has not opened. Writes stop validity after the last renewal was sent.
func NewGate(validity time.Duration) *Gate {
	g := &Gate{validity: validity, open: make(chan struct{})}
	g.final, g.end = context.WithCancelCause(context.Background())
	g.period, g.lapse = context.WithCancelCause(g.final)
	g.valid = g.open
	return g
}

// Open returns a channel that is closed when this replica has been elected. It remains closed; use Err to check whether the lease is still
// valid.
func (g *Gate) Open() <-chan struct{} { return g.open }

// Done returns a channel that is closed when this replica can never write again.
func (g *Gate) Done() <-chan struct{} { return g.final.Done() }

// Period returns a context for writes. It is canceled when this replica must no longer write; a later renewal begins a new period. If the
// process was suspended for longer than the lease lasts, the context is canceled even before the timer runs.
func (g *Gate) Period() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.check()
	return g.period
}

// Err returns nil while this replica may write, or has not been elected yet. Otherwise, it returns ErrLapsed, or the reason of Close.
func (g *Gate) Err() error {
	period := g.Period()
	if g.final.Err() != nil {
		return context.Cause(g.final)
	}
	return context.Cause(period)
}

// Elected reports whether the channel of Open is closed.
func (g *Gate) Elected() bool {
	select {
	case <-g.open:
		return true
	default:
		return false
	}
}

// Leads reports whether this replica has been elected and may write now.
func (g *Gate) Leads() bool { return g.Elected() && g.Err() == nil }

// Wait returns the period in which this replica may write, as soon as there is one. The error is the reason of Close, or that of ctx.
func (g *Gate) Wait(ctx context.Context) (period context.Context, err error) {
	for {
		period = g.Period()
		g.mu.Lock()
		valid := g.valid
		g.mu.Unlock()
		select {
		case <-g.Done():
			return nil, context.Cause(g.final)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-valid:
		}
		if period.Err() == nil {
			return period, nil
		}
	}
}

// Renewed opens or extends the gate after the lease was written. sent is when the request was sent.
func (g *Gate) Renewed(sent time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.check()
	until := sent.Add(g.validity)
	if g.final.Err() != nil || !time.Now().Before(until) {
		return
	}
	if g.until = until; g.timer == nil {
		g.timer = time.AfterFunc(time.Until(until), func() { g.Period() })
	} else {
		g.timer.Reset(time.Until(until))
	}
	if g.period.Err() != nil {
		g.period, g.lapse = context.WithCancelCause(g.final)
	}
	select {
	case <-g.valid:
	default:
		close(g.valid)
	}
}

// Suspend closes the gate until the next renewal.
func (g *Gate) Suspend() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = time.Time{}
	g.check()
}

// check closes the gate if the lease was not renewed in time. The caller must hold mu.
func (g *Gate) check() {
	if g.timer == nil || g.period.Err() != nil || time.Now().Before(g.until) {
		return
	}
	g.lapse(ErrLapsed)
	g.valid = make(chan struct{})
	if g.Exit {
		g.end(ErrLost)
	}
}

// Close closes the gate permanently for a reason. A second call has no effect.
func (g *Gate) Close(reason error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end(reason)
	if g.timer != nil {
		g.timer.Stop()
	}
}
