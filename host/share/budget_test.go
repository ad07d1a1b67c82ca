// SPDX-License-Identifier: Apache-2.0

package share

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
)

// poolModel is a pool of instances that are only numbers: their sizes. Instances that are
// interrupted end at once.
type poolModel struct {
	t       *testing.T
	world   *worldModel
	tenant  string
	account *Account
	idle    []int64 // the oldest first
	running []int64
}

func (p *poolModel) IdleSince() (int64, bool) { return int64(len(p.idle)), len(p.idle) > 0 }
func (p *poolModel) Ending() int64            { return 0 }
func (p *poolModel) Retain() bool             { return true }
func (p *poolModel) Release()                 {}

func (p *poolModel) Largest() (int64, bool) {
	if len(p.running) == 0 {
		return 0, false
	}
	return slices.Max(p.running), true
}

func (p *poolModel) CloseOldest() bool {
	p.world.lost(p, true)
	n := p.idle[0]
	p.idle = p.idle[1:]
	p.account.Give(n)
	return true
}

func (p *poolModel) InterruptLargest() {
	p.world.lost(p, false)
	i := slices.Index(p.running, slices.Max(p.running))
	n := p.running[i]
	p.running = slices.Delete(p.running, i, i+1)
	p.account.Give(n)
}

// worldModel has the tenants of a budget, and computes shares in the simplest way.
type worldModel struct {
	t           *testing.T
	limit, most int64
	pools       map[string]*poolModel
	pinned      map[string]int64
	asks        string // the tenant for which memory is taken
	wants       int64
}

func (w *worldModel) used(tenant string) int64 {
	sum := w.pinned[tenant]
	for _, n := range slices.Concat(w.pools[tenant].idle, w.pools[tenant].running) {
		sum += n
	}
	return sum
}

func (w *worldModel) total() (sum int64) {
	for name := range w.pools {
		sum += w.used(name)
	}
	return sum
}

// share fills up all tenants that use memory, and one more, until the memory is full.
func (w *worldModel) share(tenant string) int64 {
	for level := int64(1); ; level++ {
		sum := int64(0)
		for name := range w.pools {
			if name == tenant || w.used(name) > 0 {
				sum += max(level, w.pinned[name])
			}
		}
		if sum > w.limit {
			return min(level-1, w.most)
		}
	}
}

// lost checks that an instance may be taken from a tenant.
func (w *worldModel) lost(p *poolModel, idle bool) {
	share := w.share(w.asks)
	switch {
	case p.tenant == w.asks && idle:
	case p.tenant == w.asks:
		w.t.Errorf("a running guest of the tenant itself was interrupted")
	case w.used(p.tenant) <= share:
		w.t.Errorf("tenant %s with %d lost an instance for %s, but the share is %d", p.tenant, w.used(p.tenant), w.asks, share)
	case !idle && w.used(w.asks)+w.wants > share:
		w.t.Errorf("tenant %s interrupted a guest beyond its share of %d", w.asks, share)
	}
}

// A tenant always gets memory within its share, whatever others do, and loses none of it. The
// budget is never exceeded, nor the bound of a tenant, and pinned memory leaves room.
func TestBudget_SharesAreFair(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			w := &worldModel{t: t, limit: 200, most: 80 + rnd.Int64N(140), pools: map[string]*poolModel{}, pinned: map[string]int64{}}
			w.most = min(w.most, w.limit)
			b := NewBudget(w.limit, w.most)
			pins := map[string]*Account{}
			for i := range 2 + rnd.IntN(5) {
				name := fmt.Sprint(i)
				w.pools[name] = &poolModel{t: t, world: w, tenant: name, account: NewAccount(b, name, Instances)}
				pins[name] = NewAccount(b, name, Code)
				b.Join(name, w.pools[name])
			}
			names := slices.Sorted(maps.Keys(w.pools))
			for range 150 {
				w.step(rnd, b, names[rnd.IntN(len(names))], pins)
			}
		})
	}
}

// step changes one tenant at random, and compares.
func (w *worldModel) step(rnd *rand.Rand, b *Budget, name string, pins map[string]*Account) {
	p, n := w.pools[name], 1+rnd.Int64N(60)
	w.asks, w.wants = name, n
	fair, free := w.used(name)+n <= w.share(name), n <= w.limit-w.total() && w.used(name)+n <= w.most
	switch rnd.IntN(6) {
	case 0, 1, 2:
		err := p.account.Take(n)
		if (fair || free) && err != nil {
			w.t.Errorf("tenant %s with %d of a share of %d: %v", name, w.used(name), w.share(name), err)
		}
		if err == nil {
			p.running = append(p.running, n)
		}
	case 3:
		room := w.limit - n
		for _, pinned := range w.pinned {
			room -= pinned
		}
		err := pins[name].Take(n)
		if may := w.pinned[name]+n <= room; err == nil && !may || may && fair && err != nil {
			w.t.Errorf("pinning %d of %d by tenant %s, room %d: %v", n, w.pinned[name], name, room, err)
		}
		if err == nil {
			w.pinned[name] += n
		}
	case 4:
		if len(p.running) > 0 {
			p.idle, p.running = append(p.idle, p.running[0]), p.running[1:]
		}
	case 5:
		if n := w.pinned[name]; n > 0 && rnd.IntN(2) == 0 {
			pins[name].Give(n)
			w.pinned[name] = 0
		}
	}
	if st := b.Stats(); st.Used != w.total() || st.Used > st.Limit {
		w.t.Errorf("%+v, want %d", st, w.total())
	}
	for _, u := range b.Usage() {
		if u.Kinds["code"] != u.Pinned || u.Kinds["instances"] != u.Memory-u.Pinned {
			w.t.Errorf("%+v: the kinds are not the memory", u)
		}
		if u.Memory != w.used(u.Tenant) || u.Pinned != w.pinned[u.Tenant] || u.Memory > w.most || u.Share != w.share(u.Tenant) {
			w.t.Errorf("%+v, want %d, %d pinned, share %d", u, w.used(u.Tenant), w.pinned[u.Tenant], w.share(u.Tenant))
		}
	}
}

// The counters of a tenant never decrease, also after it had no memory. Those of tenants that
// never return are not remembered forever.
func TestBudget_CountersOutliveTheMemory(t *testing.T) {
	b := NewBudget(10, 0)
	for i := range uint64(3) {
		a := NewAccount(b, "t", Code)
		if a.Take(2) != nil || a.Take(20) == nil {
			t.Fatal("want 2 of 10 bytes, and not 20")
		}
		a.Give(2)
		if u := b.Usage(); len(u) != 1 || u[0].Refused != i+1 || u[0].Memory != 0 {
			t.Errorf("%+v, want %d refusals", u, i+1)
		}
	}
	for i := range 3 * maxIdle {
		_ = NewAccount(b, fmt.Sprint(i), Code).Take(20)
	}
	if n := len(b.Usage()); n > maxIdle {
		t.Errorf("%d tenants without memory are remembered", n)
	}
}
