// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"sync"
)

// ErrPoolFull is wrapped in the error of Run if the Pool cannot reserve a slot for one more client.
var ErrPoolFull = errors.New("all slots of the pool are reserved")

// Pool is a limit on concurrent jobs that several Runners share, such as all workers of a process. Make one with NewPool and set it as
// Config.Pool; a Runner is a client of the pool during its Run.
//
// Slots are shared fairly. Each client has one reserved slot, so a client that floods the pool, or whose jobs hang, never prevents another
// client from running. The other slots are shared on demand: if more clients want a slot than there are, a free one goes to the client with
// the fewest running jobs and, among equals, to the one that has waited longest. The limit is never exceeded. The limit must therefore be at
// least the number of clients; a Run that would exceed it fails, because a limit that grew by itself would not be a limit.
//
// A client that joins while the others occupy its slot gets the next one that is released. A Pool is safe for concurrent use.
type Pool struct {
	mu   sync.Mutex
	core poolCore // guarded by mu
}

// PoolStats is the state of a Pool at one moment.
type PoolStats struct {
	Limit   int // number of slots
	Clients int // Runners that share the slots
	Running int // slots in use
	Waiting int // clients that wait for a slot
}

// NewPool returns a Pool with the given number of slots, 1 to MaxConcurrency.
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

// Stats returns the current state of the Pool.
func (p *Pool) Stats() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PoolStats{Limit: p.core.limit, Clients: len(p.core.clients), Running: p.core.taken, Waiting: p.core.waiting}
}

// join adds a client. The pool calls wake, without its lock, after it has granted a slot to the client; wake must not block.
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

// leave removes a client. The client must have released all its slots.
func (p *Pool) leave(m *client) {
	p.mu.Lock()
	p.core.leave(m)
	p.grantAndUnlock()
}

// take takes a slot for a client. If it returns false, the client waits for as many slots as it wants; for each one that is granted, wake
// is called.
func (p *Pool) take(m *client, wants int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.core.take(m, wants)
}

// release returns a slot that was obtained with take.
func (p *Pool) release(m *client) {
	p.mu.Lock()
	p.core.release(m)
	p.grantAndUnlock()
}

// retract withdraws the request of the last take, because the client no longer needs a slot.
func (p *Pool) retract(m *client) {
	p.mu.Lock()
	p.core.retract(m)
	p.grantAndUnlock()
}

// grantAndUnlock grants free slots to waiting clients. It releases the lock, which the caller must hold, and wakes the clients without it.
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
