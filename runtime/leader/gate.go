// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"sync"
	"time"
)

// Gate controls whether this replica may write. It opens once, when the lease is acquired, and closes once, permanently. It implements
// context.Context, so that requests in flight can be canceled with it.
type Gate struct {
	validity time.Duration // the time after a renewal at which writes must have stopped
	open     chan struct{}
	done     chan struct{}

	mu    sync.Mutex
	timer *time.Timer // guarded by mu; nil before the lease is acquired; closes the gate
	until time.Time   // guarded by mu; when timer fires
	err   error       // guarded by mu; set once done is closed
}

// NewGate returns a Gate that has not opened. Writes stop validity after the last renewal was sent.
func NewGate(validity time.Duration) *Gate {
	return &Gate{validity: validity, open: make(chan struct{}), done: make(chan struct{})}
}

// Open returns a channel that is closed when this replica has been elected. It remains closed; use Err to check whether the lease is still
// valid.
func (g *Gate) Open() <-chan struct{} { return g.open }

// Done returns a channel that is closed when this replica must no longer write.
func (g *Gate) Done() <-chan struct{} { return g.done }

// Err returns nil while this replica may write, or may be elected later, and ErrLost or another reason after that. It checks the clock: if
// the process was suspended for longer than the lease lasts, the gate is closed even before the timer runs.
func (g *Gate) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil && g.timer != nil && !time.Now().Before(g.until) {
		return ErrLost
	}
	return g.err
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

// Leads reports whether this replica has been elected and may still write.
func (g *Gate) Leads() bool { return g.Elected() && g.Err() == nil }

// Deadline implements context.Context. There is none, because the lease is renewed.
func (g *Gate) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (g *Gate) Value(any) any { return nil }

// Renewed opens or extends the gate after the lease was written. sent is when the request was sent.
func (g *Gate) Renewed(sent time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return
	}
	g.until = sent.Add(g.validity)
	if g.timer == nil {
		g.timer = time.AfterFunc(time.Until(g.until), func() { g.Close(ErrLost) })
		close(g.open)
		return
	}
	g.timer.Reset(time.Until(g.until))
}

// Close closes the gate for a reason. A second call has no effect.
func (g *Gate) Close(reason error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return
	}
	g.err = reason
	if g.timer != nil {
		g.timer.Stop()
	}
	close(g.done)
}
