// SPDX-License-Identifier: Apache-2.0

package share

import (
	"cmp"
	"maps"
	"slices"
)

// ledger divides memory between tenants by max-min fairness. All tenants that use memory
// have the same fair share. A tenant may exceed it while memory is free, but then it owes
// the excess to tenants below their share. It is a pure data structure.
//
// Some memory cannot be taken back, such as compiled code: it is pinned. A tenant may pin no
// more than what remains unpinned afterwards. So a tenant that is alone pins at most half of
// the memory, and n of them leave a part of 1/(n+1) to a newcomer. Memory that is not pinned
// needs no such reserve, because it comes back within milliseconds.
type ledger struct {
	limit   int64 // of all tenants together
	most    int64 // of each tenant
	used    int64
	entries map[string]*entry
}

// maxIdle bounds the tenants without memory whose counters are remembered.
const maxIdle = 1000

// entry is the memory of one tenant. There is one while the tenant uses memory or has pools,
// and afterwards if a counter is not 0.
type entry struct {
	used, pinned int64
	kinds        [kinds]int64 // the parts of used
	refused      uint64
	reclaimed    uint64
	pools        map[Pool]struct{}
}

// entry returns the entry of a tenant, and makes it if there is none.
func (l *ledger) entry(tenant string) *entry {
	r := l.entries[tenant]
	if r == nil {
		if len(l.entries) >= maxIdle {
			maps.DeleteFunc(l.entries, func(_ string, r *entry) bool { return r.idle() })
		}
		r = &entry{pools: map[Pool]struct{}{}}
		l.entries[tenant] = r
	}
	return r
}

// idle reports whether a tenant has nothing.
func (r *entry) idle() bool { return r.used == 0 && len(r.pools) == 0 }

// forget removes the entry of a tenant that has nothing, not even counters.
func (l *ledger) forget(tenant string) {
	if r := l.entries[tenant]; r != nil && r.idle() && r.refused == 0 && r.reclaimed == 0 {
		delete(l.entries, tenant)
	}
}

// usedBy returns the memory of a tenant.
func (l *ledger) usedBy(tenant string) (used, pinned int64) {
	if r := l.entries[tenant]; r != nil {
		return r.used, r.pinned
	}
	return 0, 0
}

// share returns the fair share of a tenant, whether or not it uses memory. Tenants that have
// pinned more than that keep it, and the others share the rest.
func (l *ledger) share(tenant string) int64 {
	pinned := make([]int64, 0, len(l.entries)+1)
	if used, _ := l.usedBy(tenant); used == 0 {
		pinned = append(pinned, 0)
	}
	for _, r := range l.entries {
		if r.used > 0 {
			pinned = append(pinned, r.pinned)
		}
	}
	slices.SortFunc(pinned, func(a, b int64) int { return cmp.Compare(b, a) })
	left := l.limit
	for i, p := range pinned {
		if others := int64(len(pinned) - i); p <= left/others {
			return min(left/others, l.most)
		}
		left -= p
	}
	return 0
}

// take charges n bytes to a tenant if they are free, and reports whether they were.
func (l *ledger) take(tenant string, n int64, kind Kind) bool {
	used, _ := l.usedBy(tenant)
	if n > l.limit-l.used || n > l.most-used || kind.pinned() && !l.mayPin(tenant, n) {
		return false
	}
	r := l.entry(tenant)
	l.charge(r, n, kind)
	return true
}

// charge adds n bytes, which may be negative, to what a tenant uses.
func (l *ledger) charge(r *entry, n int64, kind Kind) {
	l.used += n
	r.used += n
	r.kinds[kind] += n
	if kind.pinned() {
		r.pinned += n
	}
}

// mayPin reports whether a tenant may pin n more bytes.
func (l *ledger) mayPin(tenant string, n int64) bool {
	left := l.limit - n
	for _, r := range l.entries {
		left -= r.pinned
	}
	_, pinned := l.usedBy(tenant)
	return pinned+n <= left
}

// give returns n bytes that a tenant has taken.
func (l *ledger) give(tenant string, n int64, kind Kind) {
	l.charge(l.entries[tenant], -n, kind)
	l.forget(tenant)
}

// due reports whether n more bytes are within the fair share of a tenant.
func (l *ledger) due(tenant string, n int64) bool {
	used, _ := l.usedBy(tenant)
	return used+n <= l.share(tenant)
}

// debtors returns the tenants whose memory may be taken for n bytes of another one, in no
// order: those that exceed their share, and would still not have less than that tenant
// unless the bytes are within its share. The pinned memory of a debtor stays.
func (l *ledger) debtors(tenant string, n int64) (list []string) {
	share := l.share(tenant)
	used, _ := l.usedBy(tenant)
	if used += n; used > l.most {
		return nil
	}
	for name, r := range l.entries {
		if name != tenant && r.used > max(share, r.pinned) && (used <= share || r.used >= used) {
			list = append(list, name)
		}
	}
	return list
}

// best returns the tenant with the most memory of those that have a pool with a rank, and of
// its pools the one with the highest rank. It returns nil if no pool has a rank.
func (l *ledger) best(tenants []string, rank func(Pool) (int64, bool)) (of *entry, pool Pool) {
	var highest int64
	for _, name := range tenants {
		r := l.entries[name]
		for p := range r.pools {
			at, ok := rank(p)
			if ok && (pool == nil || cmp.Or(cmp.Compare(r.used, of.used), cmp.Compare(at, highest)) > 0) {
				of, pool, highest = r, p, at
			}
		}
	}
	return of, pool
}

// ending returns the memory of the instances of tenants that were interrupted and are not
// closed.
func (l *ledger) ending(tenants []string) (bytes int64) {
	for _, name := range tenants {
		for p := range l.entries[name].pools {
			bytes += p.Ending()
		}
	}
	return bytes
}
