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
var ErrLapsed = errors.New("the lease is not valid: nothing is written until it is renewed")

// Gate controls whether this replica may write. It opens when the lease is acquired. If the lease is not renewed in time, it closes until the
// next renewal succeeds. Close closes it permanently.
type Gate struct {
	// Exit makes a lease that was not renewed in time count as lost. It must be set before the gate is used.
	Exit bool
	// Guarded makes a lapse last until Confirm is called after the renewal: another group of replicas may have started meanwhile. It must be
	// set before the gate is used.
	Guarded bool

	validity time.Duration // the time after a renewal at which writes must have stopped
	open     chan struct{}
	final    context.Context //nolint:containedctx // canceled by Close
	end      context.CancelCauseFunc

	mu        sync.Mutex
	timer     *time.Timer             // guarded by mu; nil before the lease is acquired; ends its validity
	until     time.Time               // guarded by mu; when timer fires; zero while the lease is not valid
	lapses    uint64                  // guarded by mu; how often the lease was not renewed in time
	confirmed uint64                  // guarded by mu; the last lapse that was confirmed
	period    context.Context         //nolint:containedctx // guarded by mu; see Period
	lapse     context.CancelCauseFunc // guarded by mu; ends period
	renewed   chan struct{}           // guarded by mu; closed while the lease is valid
}

// NewGate returns a Gate that has not opened. Writes stop validity after the last renewal was sent.
func NewGate(validity time.Duration) *Gate {
	g := &Gate{validity: validity, open: make(chan struct{}), renewed: make(chan struct{})}
	g.final, g.end = context.WithCancelCause(context.Background())
	g.period, g.lapse = context.WithCancelCause(g.final)
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

// Valid reports whether this replica has the lease. It may write if, in addition, a lapse was confirmed: see Leads.
func (g *Gate) Valid() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.check()
	return !g.until.IsZero() && g.final.Err() == nil
}

// Renewal returns as soon as the lease is valid. lapse is the argument of Confirm. The error is the reason of Close, or that of ctx.
func (g *Gate) Renewal(ctx context.Context) (lapse uint64, err error) {
	for {
		g.mu.Lock()
		g.check()
		valid, lapse, renewed := !g.until.IsZero(), g.lapses, g.renewed
		g.mu.Unlock()
		switch {
		case g.final.Err() != nil:
			return 0, context.Cause(g.final)
		case valid:
			return lapse, nil
		}
		select {
		case <-g.Done():
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-renewed:
		}
	}
}

// Renewed extends the validity of the lease after it was written, and opens the gate. sent is when the request was sent.
func (g *Gate) Renewed(sent time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.check()
	until := sent.Add(g.validity)
	if g.final.Err() != nil || !time.Now().Before(until) {
		return
	}
	if g.until.IsZero() {
		close(g.renewed)
	}
	if g.until = until; g.timer == nil {
		g.timer = time.AfterFunc(time.Until(until), func() { g.Period() })
		close(g.open)
	} else {
		g.timer.Reset(time.Until(until))
	}
	g.begin()
}

// Confirm opens a guarded gate after a lapse. It returns false if the lease has lapsed again since Renewal.
func (g *Gate) Confirm(lapse uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.check(); lapse != g.lapses {
		return false
	}
	g.confirmed = lapse
	g.begin()
	return true
}

// begin begins a new period if the last one has ended, and this replica may write. The caller must hold mu, and the lease must be valid.
func (g *Gate) begin() {
	if g.period.Err() != nil && (!g.Guarded || g.confirmed == g.lapses) {
		g.period, g.lapse = context.WithCancelCause(g.final)
	}
}

// Suspend closes the gate until the next renewal.
func (g *Gate) Suspend() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.until.IsZero() {
		g.until = time.Now()
	}
	g.check()
}

// check closes the gate if the lease was not renewed in time. The caller must hold mu.
func (g *Gate) check() {
	if g.until.IsZero() || time.Now().Before(g.until) {
		return
	}
	g.until, g.renewed = time.Time{}, make(chan struct{})
	g.lapses++
	g.lapse(ErrLapsed)
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
