// SPDX-License-Identifier: Apache-2.0

package share

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Turns bounds the number of jobs of one kind that run at a time, such as downloads or
// compilations, and divides it between tenants. All methods are safe for concurrent use.
type Turns struct {
	mu   sync.Mutex
	line turnLine // guarded by mu
}

// NewTurns returns a number of turns. A tenant has at most each of them. If all are taken,
// a tenant that has none still gets one, up to as many turns again, so that its first job
// does not wait for the jobs of another tenant, which may be slow on purpose.
func NewTurns(total, each int) *Turns {
	return &Turns{line: turnLine{total: total, each: each, tenants: map[string]*turnTaker{}}}
}

// Take waits for a turn of the tenant. The error is the cause of the end of ctx.
func (t *Turns) Take(ctx context.Context, tenant string) error {
	t.mu.Lock()
	w := t.line.enter(tenant)
	t.give()
	t.mu.Unlock()
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.line.leave(tenant, w) { // it was given a turn in the meantime
		t.line.end(tenant, 1, 0)
	}
	t.give()
	return context.Cause(ctx)
}

// More takes up to most further turns for a tenant that has one, and returns their number. It
// takes none if another job waits.
func (t *Turns) More(tenant string, most int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.line.more(tenant, most)
}

// End ends a number of turns of a tenant. The cost of all of them decides which tenant goes
// first: the tenant whose turns have cost less.
func (t *Turns) End(tenant string, turns int, cost time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line.end(tenant, turns, cost)
	t.give()
}

// Taken returns the number of turns that are taken.
func (t *Turns) Taken() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.line.taken
}

// give gives free turns to waiters; the caller holds mu.
func (t *Turns) give() {
	for w := t.line.next(); w != nil; w = t.line.next() {
		close(w.given)
	}
}

// turnLine decides which tenant gets the next turn: the one that has the fewest turns, of
// these the one whose turns have cost least, and of these the one that has waited longest. It
// is a pure data structure.
type turnLine struct {
	total, each int
	taken       int
	arrivals    uint64
	clock       time.Duration // the highest cost at which a tenant got a turn; see enter
	tenants     map[string]*turnTaker
}

// turnTaker is a tenant that has turns, waits for turns, or has paid for more than others.
type turnTaker struct {
	turns   int
	cost    time.Duration
	waiting []*turnWaiter // in the order in which they arrived
}

// turnWaiter waits for a turn, which it gets when given is closed.
type turnWaiter struct {
	number uint64
	given  chan struct{}
}

// enter adds a job that waits. A tenant that had none before starts at the cost of those that
// have been served, so that it has no advantage from the time in which it wanted nothing.
func (l *turnLine) enter(tenant string) *turnWaiter {
	t := l.tenants[tenant]
	if t == nil {
		t = &turnTaker{}
		l.tenants[tenant] = t
	}
	if t.idle() {
		t.cost = max(t.cost, l.clock)
	}
	l.arrivals++
	w := &turnWaiter{l.arrivals, make(chan struct{})}
	t.waiting = append(t.waiting, w)
	return w
}

func (t *turnTaker) idle() bool { return t.turns == 0 && len(t.waiting) == 0 }

// may reports whether a tenant may have another turn now.
func (l *turnLine) may(t *turnTaker) bool {
	if l.taken >= l.total && t.turns > 0 {
		return false
	}
	return t.turns < l.each && l.taken < 2*l.total
}

// before reports whether a tenant that waits gets a turn before another one.
func (t *turnTaker) before(o *turnTaker) bool {
	if t.turns != o.turns {
		return t.turns < o.turns
	}
	if t.cost != o.cost {
		return t.cost < o.cost
	}
	return t.waiting[0].number < o.waiting[0].number
}

// next takes a turn for the job that is next, or returns nil if none may begin.
func (l *turnLine) next() *turnWaiter {
	var best *turnTaker
	for _, t := range l.tenants {
		if len(t.waiting) > 0 && l.may(t) && (best == nil || t.before(best)) {
			best = t
		}
	}
	if best == nil {
		return nil
	}
	w := best.waiting[0]
	best.waiting = best.waiting[1:]
	best.turns++
	l.taken++
	l.clock = max(l.clock, best.cost)
	return w
}

// more takes up to most turns that no job waits for.
func (l *turnLine) more(tenant string, most int) (n int) {
	for _, t := range l.tenants {
		if len(t.waiting) > 0 {
			return 0
		}
	}
	for t := l.tenants[tenant]; n < most && l.taken < l.total && t.turns < l.each; n++ {
		t.turns++
		l.taken++
	}
	return n
}

// leave removes a job that waits, and reports whether it still waited.
func (l *turnLine) leave(tenant string, w *turnWaiter) bool {
	t := l.tenants[tenant]
	i := slices.Index(t.waiting, w)
	if i < 0 {
		return false
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	l.forget()
	return true
}

func (l *turnLine) end(tenant string, turns int, cost time.Duration) {
	t := l.tenants[tenant]
	t.turns -= turns
	t.cost += cost
	l.taken -= turns
	l.forget()
}

// forget removes tenants that want nothing and have no cost to catch up on. If nobody wants
// anything, the past no longer matters.
func (l *turnLine) forget() {
	wanted := false
	for name, t := range l.tenants {
		if !t.idle() {
			wanted = true
		} else if t.cost <= l.clock {
			delete(l.tenants, name)
		}
	}
	if !wanted {
		l.clock = 0
		clear(l.tenants)
	}
}
