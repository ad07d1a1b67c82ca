// SPDX-License-Identifier: Apache-2.0

package share

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// ErrMemoryBudget matches the error of a call for which a Budget had no memory.
var ErrMemoryBudget = errors.New("memory budget exhausted")

// reclaimWait bounds how long a tenant below its share waits for memory. A guest that is
// interrupted usually ends within a millisecond.
const reclaimWait = 2 * time.Second

// endWait is how long it waits for guests that were interrupted before it interrupts another
// one.
const endWait = 100 * time.Millisecond

// Budget bounds the memory of modules and of the host for them, and divides it fairly between
// tenants. If it is exhausted, a tenant takes memory from itself and from tenants that exceed
// their fair share, never from others: idle instances are closed first, those of the tenant
// with the most memory, the one that has been idle longest. If none is idle and the tenant
// stays within its fair share, the largest running guests of the others are interrupted.
// Otherwise a new instance is refused, and a guest that grows gets no more memory: only that
// call fails. An operation answers StatusBudget. Accounts charge a Budget. All methods are
// safe for concurrent use; a nil Budget bounds nothing.
type Budget struct {
	turn  chan struct{} // a one-token semaphore: its holder may interrupt guests
	freed chan struct{} // has a token after memory was given back

	mu      sync.Mutex
	ledger  ledger // guarded by mu; mu is taken before a pool's lock
	refused uint64 // guarded by mu
}

// Pool has the instances of a revision, which a Budget may close and interrupt.
type Pool interface {
	// IdleSince returns when the oldest idle instance became idle, in nanoseconds of Unix
	// time, and whether there is one.
	IdleSince() (ns int64, ok bool)
	// Largest returns the memory of the largest instance with a call that can be interrupted,
	// and whether there is one.
	Largest() (bytes int64, ok bool)
	// Retain takes a reference to the pool, unless it is closed. Release gives it back.
	Retain() bool
	Release()
	// Ending returns the memory of the instances that were interrupted and are not closed.
	Ending() int64
	// CloseOldest closes the instance that has been idle longest, and reports whether
	// there still was one.
	CloseOldest() bool
	// InterruptLargest interrupts the largest instance.
	InterruptLargest()
}

// NewBudget returns a budget of this many bytes, of which each tenant may use most. If most
// is 0, it may use all of them.
func NewBudget(bytes, most int64) *Budget {
	l := ledger{limit: bytes, most: min(cmp.Or(most, math.MaxInt64), bytes), entries: map[string]*entry{}}
	return &Budget{ledger: l, turn: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
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
	s := BudgetStats{Limit: b.ledger.limit, Used: b.ledger.used, Refused: b.refused}
	for _, r := range b.ledger.entries {
		s.Pools += len(r.pools)
	}
	return s
}

// Usage returns the figures of all tenants, ordered by name.
func (b *Budget) Usage() (list []Usage) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, r := range b.ledger.entries {
		u := Usage{Tenant: name, Memory: r.used, Pinned: r.pinned, Share: b.ledger.share(name), Refused: r.refused, Reclaimed: r.reclaimed}
		u.Kinds = map[string]int64{}
		for kind, n := range r.kinds {
			if n > 0 {
				u.Kinds[Kind(kind).String()] = n
			}
		}
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b Usage) int { return strings.Compare(a.Tenant, b.Tenant) })
	return list
}

// Join makes the instances of a tenant's pool available to the budget.
func (b *Budget) Join(tenant string, p Pool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.entry(tenant).pools[p] = struct{}{}
}

// Leave ends Join.
func (b *Budget) Leave(tenant string, p Pool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.ledger.entries[tenant]; r != nil {
		delete(r.pools, p)
		b.ledger.forget(tenant)
	}
}

// tryTake charges n bytes if they are free.
func (b *Budget) tryTake(tenant string, n int64, kind Kind) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledger.take(tenant, n, kind)
}

// take charges n bytes that are not free: it takes them from others if it must and may. The
// error is an *abi.LimitError that matches ErrMemoryBudget.
func (b *Budget) take(tenant string, n int64, kind Kind) error {
	if !b.mayTake(tenant, n, kind) {
		return b.refuse(tenant, n)
	}
	for b.evict(tenant, n) {
		if b.tryTake(tenant, n, kind) {
			return nil
		}
	}
	if !b.reclaim(tenant, n, kind) {
		return b.refuse(tenant, n)
	}
	return nil
}

// mayTake reports whether a tenant could have n more bytes if there were memory.
func (b *Budget) mayTake(tenant string, n int64, kind Kind) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return n <= b.ledger.most && (!kind.pinned() || b.ledger.mayPin(tenant, n))
}

func (b *Budget) refuse(tenant string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused++
	l := &b.ledger
	l.entry(tenant).refused++
	used, _ := l.usedBy(tenant)
	return &abi.LimitError{
		Limit: abi.LimitMemoryBudget, Value: SizeText(l.limit), Err: ErrMemoryBudget,
		What: fmt.Sprintf("%v: %s of %s in use, %s by tenant %s with a share of %s, no idle instance to close, %s more needed: raise the budget, or lower concurrency or memory limits",
			ErrMemoryBudget, SizeText(l.used), SizeText(l.limit), SizeText(used), tenant, SizeText(l.share(tenant)>>10<<10), SizeText(n)),
	}
}

// force charges n bytes whether or not they are free.
func (b *Budget) force(tenant string, n int64, kind Kind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.charge(b.ledger.entry(tenant), n, kind)
}

// give returns n bytes that were taken.
func (b *Budget) give(tenant string, n int64, kind Kind) {
	b.mu.Lock()
	b.ledger.give(tenant, n, kind)
	b.mu.Unlock()
	select {
	case b.freed <- struct{}{}:
	default:
	}
}

// evict closes an idle instance for n bytes of a tenant, and reports whether there was one.
func (b *Budget) evict(tenant string, n int64) bool {
	for {
		p := b.idle(tenant, n)
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

// reclaim takes n bytes within the share of a tenant from running guests of those that exceed
// theirs, and reports whether it could. One caller at a time interrupts guests, so that no
// more of them end than necessary.
func (b *Budget) reclaim(tenant string, n int64, kind Kind) bool {
	late := time.NewTimer(reclaimWait)
	defer late.Stop()
	if !b.owed(tenant, n) {
		return b.tryTake(tenant, n, kind)
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-late.C:
		return b.tryTake(tenant, n, kind)
	}
	tick := time.NewTicker(endWait)
	defer tick.Stop()
	for patient := true; !b.tryTake(tenant, n, kind); {
		if b.evict(tenant, n) {
			continue
		}
		if !b.owed(tenant, n) {
			return false
		}
		b.interrupt(tenant, n, patient)
		select {
		case <-b.freed:
			patient = true
		case <-tick.C:
			patient = false
		case <-late.C:
			return b.tryTake(tenant, n, kind)
		}
	}
	return true
}

// owed reports whether n bytes are within the share of a tenant, and others owe memory to it.
func (b *Budget) owed(tenant string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledger.due(tenant, n) && len(b.ledger.debtors(tenant, n)) > 0
}

// interrupt interrupts the largest running guest of those that owe n bytes to a tenant. If it
// is patient, it does nothing if guests that were interrupted before will give enough back.
func (b *Budget) interrupt(tenant string, n int64, patient bool) {
	b.mu.Lock()
	from := b.ledger.debtors(tenant, n)
	missing := n - (b.ledger.limit - b.ledger.used)
	if patient {
		missing -= b.ledger.ending(from)
	}
	var debtor *entry
	var pool Pool
	if missing > 0 {
		debtor, pool = b.ledger.best(from, Pool.Largest)
	}
	if pool == nil || !pool.Retain() {
		b.mu.Unlock()
		return
	}
	debtor.reclaimed++
	b.mu.Unlock()
	pool.InterruptLargest()
	pool.Release()
}

// idle returns the pool with the idle instance to close for n bytes of a tenant, with a
// reference, so that it cannot be closed at the same time. It returns nil if there is none.
func (b *Budget) idle(tenant string, n int64) Pool {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := b.ledger.debtors(tenant, n)
	if b.ledger.entries[tenant] != nil {
		from = append(from, tenant)
	}
	_, pool := b.ledger.best(from, func(p Pool) (int64, bool) {
		since, ok := p.IdleSince()
		return -since, ok
	})
	if pool == nil || !pool.Retain() {
		return nil
	}
	return pool
}
