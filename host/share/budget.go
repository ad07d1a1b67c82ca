// SPDX-License-Identifier: Apache-2.0

package share

import (
	"errors"
	"fmt"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
)

// ErrMemoryBudget matches the error of a call for which a Budget had no memory.
var ErrMemoryBudget = errors.New("memory budget exhausted")

// Budget bounds the linear memory of all instances of all modules that share it, and the
// host's own memory for them (Account). If it is exhausted, idle instances of any module
// are closed, the one that has been idle longest first. If none is idle, a new instance
// is refused, and a guest that grows gets no more memory: only that call fails. An
// operation answers StatusBudget. Compiled code is not counted. All methods are safe for
// concurrent use; a nil Budget bounds nothing.
type Budget struct {
	limit int64

	mu      sync.Mutex
	used    int64             // guarded by mu
	refused uint64            // guarded by mu
	pools   map[Pool]struct{} // guarded by mu; mu is taken before a pool's lock
}

// Pool has idle instances that a Budget may close.
type Pool interface {
	// IdleSince returns when the oldest idle instance became idle, in nanoseconds of Unix
	// time, and whether there is one.
	IdleSince() (ns int64, ok bool)
	// Retain takes a reference to the pool, unless it is closed. Release gives it back.
	Retain() bool
	Release()
	// CloseOldest closes the instance that has been idle longest, and reports whether
	// there still was one.
	CloseOldest() bool
}

// NewBudget returns a budget of this many bytes.
func NewBudget(bytes int64) *Budget {
	return &Budget{limit: bytes, pools: map[Pool]struct{}{}}
}

// BudgetStats are the figures of a Budget. Limit and Used are bytes; Refused counts the
// requests for which there was no memory, and Pools the pools that share the budget.
type BudgetStats struct {
	Limit, Used int64
	Refused     uint64
	Pools       int
}

// Stats returns the budget's figures.
func (b *Budget) Stats() BudgetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return BudgetStats{Limit: b.limit, Used: b.used, Refused: b.refused, Pools: len(b.pools)}
}

// Join makes the idle instances of a pool available to the budget.
func (b *Budget) Join(p Pool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools[p] = struct{}{}
}

// Leave ends Join.
func (b *Budget) Leave(p Pool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pools, p)
}

// TryTake charges n bytes if they are free.
func (b *Budget) TryTake(n int64) bool {
	if b == nil || n <= 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.limit-b.used {
		return false
	}
	b.used += n
	return true
}

// Take charges n bytes, and closes idle instances until they are free. The error is an
// *abi.LimitError that matches ErrMemoryBudget.
func (b *Budget) Take(n int64) error {
	for !b.TryTake(n) {
		if !b.Evict() {
			return b.refuse(n)
		}
	}
	return nil
}

func (b *Budget) refuse(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused++
	return &abi.LimitError{
		Limit: abi.LimitMemoryBudget, Value: SizeText(b.limit), Err: ErrMemoryBudget,
		What: fmt.Sprintf("%v: %s of %s in use, no idle instance to close, %s more needed: raise the budget, or lower concurrency or memory limits",
			ErrMemoryBudget, SizeText(b.used), SizeText(b.limit), SizeText(n)),
	}
}

// Give returns n bytes that were taken.
func (b *Budget) Give(n int64) {
	if b == nil || n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
}

// Evict closes the instance that has been idle longest, and reports whether there was one.
func (b *Budget) Evict() bool {
	for {
		p := b.oldest()
		if p == nil {
			return false
		}
		closed := p.CloseOldest() // a run may have taken the instance meanwhile
		p.Release()
		if closed {
			return true
		}
	}
}

// oldest returns the pool that has the instance that was idle longest, with a reference, so
// that it cannot be closed at the same time. It returns nil if there is none.
func (b *Budget) oldest() Pool {
	b.mu.Lock()
	defer b.mu.Unlock()
	var pool Pool
	var oldest int64
	for p := range b.pools {
		if since, ok := p.IdleSince(); ok && (pool == nil || since < oldest) {
			pool, oldest = p, since
		}
	}
	if pool == nil || !pool.Retain() {
		return nil
	}
	return pool
}
