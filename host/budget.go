package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/wasmctl/wasmctl/abi"
)

// ErrMemoryBudget is matched by the error of a call that a Budget had no memory
// for.
var ErrMemoryBudget = errors.New("memory budget exhausted")

// Budget bounds the linear memory of all instances of all modules that share
// it, and the host's own memory for them (Account). Where it is used up, idle
// instances are closed, whichever module they are of, the one that has been idle
// longest first. Where none is idle a new instance is refused, and a guest that
// grows gets no more memory: a failure of that one call. An operation answers
// StatusBudget. Compiled code is not counted. All methods are safe for concurrent
// use.
type Budget struct {
	limit int64

	mu      sync.Mutex
	used    int64                  // guarded by mu
	refused uint64                 // guarded by mu
	pools   map[*revision]struct{} // guarded by mu; mu is taken before a revision's
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int64) *Budget {
	return &Budget{limit: bytes, pools: map[*revision]struct{}{}}
}

// BudgetStats are figures of a Budget. Limit and Used are bytes; Refused counts
// the times that there was no memory.
type BudgetStats struct {
	Limit, Used int64
	Refused     uint64
}

// Stats returns the budget's figures.
func (b *Budget) Stats() BudgetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return BudgetStats{Limit: b.limit, Used: b.used, Refused: b.refused}
}

// join makes a revision's idle instances known. A nil Budget bounds nothing.
func (b *Budget) join(g *revision) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools[g] = struct{}{}
}

func (b *Budget) leave(g *revision) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pools, g)
}

// tryTake charges n bytes where they are free.
func (b *Budget) tryTake(n int64) bool {
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

// take charges n bytes, and closes idle instances until they are free.
func (b *Budget) take(n int64) error {
	for !b.tryTake(n) {
		if !b.evict() {
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
		Limit: abi.LimitMemoryBudget, Value: sizeText(b.limit), Err: ErrMemoryBudget,
		What: fmt.Sprintf("%v: %s of %s in use, no idle instance to close, %s more needed: raise the budget, or lower concurrency or memory limits",
			ErrMemoryBudget, sizeText(b.used), sizeText(b.limit), sizeText(n)),
	}
}

func (b *Budget) give(n int64) {
	if b == nil || n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
}

// evict closes the instance that has been idle longest, and reports whether
// there was one.
func (b *Budget) evict() bool {
	for {
		g := b.oldest()
		if g == nil {
			return false
		}
		in := g.popOldest()
		if in != nil { // or a run has taken it meanwhile
			// Not the caller's context: whose instance this is did not ask for anything.
			in.close(context.Background())
			g.dropUnused()
		}
		g.release()
		if in != nil {
			return true
		}
	}
}

// oldest returns the revision that has the instance that was idle longest, with a
// reference, so that it cannot be closed at the same time; nil if there is none.
func (b *Budget) oldest() *revision {
	b.mu.Lock()
	defer b.mu.Unlock()
	var pool *revision
	var oldest int64
	for g := range b.pools {
		if since, ok := g.idleSince(); ok && (pool == nil || since < oldest) {
			pool, oldest = g, since
		}
	}
	if pool == nil || !pool.retain() {
		return nil
	}
	return pool
}
