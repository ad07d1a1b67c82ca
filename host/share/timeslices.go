// SPDX-License-Identifier: Apache-2.0

package share

import "slices"

// timeSlices hands out a number of CPUs to waiters in turn: the tenants one after the other,
// the modules of a tenant one after the other, and the waiters of one module in the order in
// which they came. So a tenant gets no more with more modules, and a module no more by
// waiting with more instances. It is a pure data structure.
type timeSlices[M comparable] struct {
	free int         // CPUs without a turn
	ring []*group[M] // tenants with waiters, the next one first
}

// group has the modules of one tenant that have waiters, the next one first.
type group[M comparable] struct {
	tenant string
	ring   []*line[M]
}

// line has the waiters of one module.
type line[M comparable] struct {
	module  M
	waiters []*waiter
}

// waiter waits for a turn, which it gets when given is closed.
type waiter struct{ given chan struct{} }

// take takes a free CPU, unless a module waits for it.
func (t *timeSlices[M]) take() bool {
	if t.free == 0 || len(t.ring) > 0 {
		return false
	}
	t.free--
	return true
}

// wait puts a waiter at the end of its module's line.
func (t *timeSlices[M]) wait(tenant string, module M, w *waiter) {
	i := t.find(tenant)
	if i < 0 {
		i = len(t.ring)
		t.ring = append(t.ring, &group[M]{tenant: tenant})
	}
	g := t.ring[i]
	if i = g.find(module); i < 0 {
		i = len(g.ring)
		g.ring = append(g.ring, &line[M]{module: module})
	}
	g.ring[i].waiters = append(g.ring[i].waiters, w)
}

func (t *timeSlices[M]) find(tenant string) int {
	return slices.IndexFunc(t.ring, func(g *group[M]) bool { return g.tenant == tenant })
}

func (g *group[M]) find(module M) int {
	return slices.IndexFunc(g.ring, func(l *line[M]) bool { return l.module == module })
}

// next takes the waiter whose turn it is, or nil.
func (t *timeSlices[M]) next() *waiter {
	if len(t.ring) == 0 {
		return nil
	}
	g := t.ring[0]
	l := g.ring[0]
	w := l.waiters[0]
	l.waiters = l.waiters[1:]
	g.ring = turned(g.ring, len(l.waiters) > 0)
	t.ring = turned(t.ring, len(g.ring) > 0)
	return w
}

// turned removes the first element of a ring, or moves it to the end if it stays.
func turned[E any](ring []E, stays bool) []E {
	first := ring[0]
	if ring = ring[1:]; stays {
		ring = append(ring, first)
	}
	return ring
}

// leave removes a waiter from its module's line, and reports whether it was still there.
func (t *timeSlices[M]) leave(tenant string, module M, w *waiter) bool {
	i := t.find(tenant)
	if i < 0 {
		return false
	}
	g := t.ring[i]
	j := g.find(module)
	if j < 0 {
		return false
	}
	l := g.ring[j]
	at := slices.Index(l.waiters, w)
	if at < 0 {
		return false
	}
	if l.waiters = slices.Delete(l.waiters, at, at+1); len(l.waiters) == 0 {
		g.ring = slices.Delete(g.ring, j, j+1)
	}
	if len(g.ring) == 0 {
		t.ring = slices.Delete(t.ring, i, i+1)
	}
	return true
}
