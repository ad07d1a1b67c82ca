package runner

import (
	"errors"
	"fmt"
	"sync"
)

// ErrPoolFull is wrapped in the error of Run where the Pool has no slot to reserve for one more client.
var ErrPoolFull = errors.New("all slots of the pool are reserved")

// Pool is a limit of jobs that Runners share: the workers of a process. Make one with NewPool and name it in Config.Pool; a Runner is a
// client of it from the begin of its Run to the end.
//
// It shares fairly. Each client has one slot reserved, so that one that floods, or hangs on all the slots it has, never keeps another from
// running. The other slots go to clients that ask for one; where more ask than there are slots, a freed one goes to the client with the
// fewest running jobs and, among equals, to the one that has waited longest. The limit is never exceeded. So there must be a slot for each
// client: Run refuses to be one client too many, because a limit that grows by itself is none.
//
// A client that joins while the others hold its slot gets the next one that is freed. A Pool may be used by any number of goroutines.
type Pool struct {
	mu   sync.Mutex
	core poolCore // guarded by mu
}

// PoolStats is what a Pool has at one moment.
type PoolStats struct {
	Limit   int // slots
	Clients int // Runners that share them
	Running int // slots that are taken
	Waiting int // clients that wait for slots
}

// NewPool returns a Pool of a number of slots, 1 to MaxConcurrency.
func NewPool(limit int) (*Pool, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	return &Pool{core: poolCore{limit: limit}}, nil
}

func checkLimit(limit int) error {
	if limit < 1 || limit > MaxConcurrency {
		return fmt.Errorf("runner: pool limit %d: must be 1 to %d", limit, MaxConcurrency)
	}
	return nil
}

// Stats returns what the Pool has now.
func (p *Pool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PoolStats{Limit: p.core.limit, Clients: len(p.core.clients), Running: p.core.taken, Waiting: p.core.waiting}
}

// join makes a client. wake is called, without a lock, after a slot was granted to it; it must not block.
func (p *Pool) join(wake func()) (*client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.core.clients); n >= p.core.limit {
		return nil, fmt.Errorf("runner: pool limit %d, with %d clients: raise the limit: %w", p.core.limit, n, ErrPoolFull)
	}
	m := &client{wake: wake}
	p.core.clients = append(p.core.clients, m)
	return m, nil
}

// leave ends a membership; none of its slots is taken any longer.
func (p *Pool) leave(m *client) {
	p.mu.Lock()
	p.core.leave(m)
	p.grantAndUnlock()
}

// take takes a slot for a client. If it returns false, the client waits for as many as it wants: they will be granted to it, and wake called
// for each.
func (p *Pool) take(m *client, wants int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.core.take(m, wants)
}

// release gives a slot back that take gave.
func (p *Pool) release(m *client) {
	p.mu.Lock()
	p.core.release(m)
	p.grantAndUnlock()
}

// retract takes back what the last take asked for, because the client has no use for a slot any
// longer.
func (p *Pool) retract(m *client) {
	p.mu.Lock()
	p.core.retract(m)
	p.grantAndUnlock()
}

// grantAndUnlock grants free slots to those who wait, with the lock that the caller has taken, and wakes them without it.
func (p *Pool) grantAndUnlock() {
	for {
		m := p.core.grant()
		p.mu.Unlock()
		if m == nil {
			return
		}
		m.wake()
		p.mu.Lock()
	}
}
