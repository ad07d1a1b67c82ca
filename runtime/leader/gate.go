package leader

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Gate says whether this replica may write. It opens once, when the lease is
// won, and closes once, for good. It implements context.Context, so that
// requests in flight can end with it.
type Gate struct {
	validity time.Duration // from a renewal to the moment when writes must have stopped
	open     chan struct{}
	done     chan struct{}

	mu    sync.Mutex
	timer *time.Timer // guarded by mu; nil before the lease is won; closes the gate
	until time.Time   // guarded by mu; when timer fires
	err   error       // guarded by mu; set once done is closed
}

func newGate(validity time.Duration) *Gate {
	return &Gate{validity: validity, open: make(chan struct{}), done: make(chan struct{})}
}

// Open returns a channel that is closed when this replica has been elected. It
// stays closed: whether the lease is still held is said by Err.
func (g *Gate) Open() <-chan struct{} { return g.open }

// Done returns a channel that is closed when this replica must not write any
// more.
func (g *Gate) Done() <-chan struct{} { return g.done }

// Err returns nil while this replica may write, or may be elected later, and
// ErrLost or another reason after that. It looks at the clock: a process that
// was stopped for longer than the lease lasts finds its gate closed before the
// timer has had a chance to run.
func (g *Gate) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil && g.timer != nil && !time.Now().Before(g.until) {
		return ErrLost
	}
	return g.err
}

// Deadline implements context.Context; there is none, as the lease is renewed.
func (g *Gate) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (g *Gate) Value(any) any { return nil }

// renewed extends the gate after the lease was written by a request that was
// sent at the given time.
func (g *Gate) renewed(sent time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return
	}
	g.until = sent.Add(g.validity)
	if g.timer == nil {
		g.timer = time.AfterFunc(time.Until(g.until), func() { g.close(ErrLost) })
		close(g.open)
		return
	}
	g.timer.Reset(time.Until(g.until))
}

// close closes the gate for a reason. A second time does nothing.
func (g *Gate) close(reason error) {
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

// lock tells the gate of each write of the lease.
type lock struct {
	resourcelock.Interface

	gate *Gate
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	err := l.Interface.Create(ctx, r)
	if err == nil {
		l.gate.renewed(sent)
	}
	return err
}

// Update implements resourcelock.Interface. A record without a holder gives the
// lease up: from the moment it is sent another replica may write, so this one
// must have stopped. (client-go calls OnStoppedLeading only afterwards.)
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" {
		l.gate.close(ErrLost) // in an orderly stop it is closed already
	}
	sent := time.Now()
	err := l.Interface.Update(ctx, r)
	if err == nil && r.HolderIdentity == l.Identity() {
		l.gate.renewed(sent)
	}
	return err
}
