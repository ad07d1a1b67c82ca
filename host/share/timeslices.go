// SPDX-License-Identifier: Apache-2.0

package share

import "slices"

// timeSlices hands out a number of CPUs to waiters in turn: the tenants one after the other,
// the modules of a tenant one after the other, and the waiters of one module in the order in
// which they came. So a tenant gets no more with more modules, and a module no more by
// waiting with more instances. It is a pure data structure.
type timeSlices[M comparable] struct {
	free int        // CPUs without a turn
	ring []*line[M] // modules with waiters, the next one first; those of a tenant are together
}

// line has the waiters of one module.
type line[M comparable] struct {
	tenant  string
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
	end := len(t.ring)
	for i, l := range t.ring {
		if l.module == module {
			l.waiters = append(l.waiters, w)
			return
		}
		if l.tenant == tenant {
			end = i + 1
		}
	}
	t.ring = slices.Insert(t.ring, end, &line[M]{tenant, module, []*waiter{w}})
}

// next takes the waiter whose turn it is, or nil.
func (t *timeSlices[M]) next() *waiter {
	if len(t.ring) == 0 {
		return nil
	}
	l := t.ring[0]
	w := l.waiters[0]
	l.waiters = l.waiters[1:]
	of := 1 // the number of the tenant's modules
	for of < len(t.ring) && t.ring[of].tenant == l.tenant {
		of++
	}
	rotate(t.ring[:of], 1)
	rotate(t.ring, of)
	if len(l.waiters) == 0 {
		t.ring = t.ring[:len(t.ring)-1]
	}
	return w
}

// rotate moves the first n elements to the end.
func rotate[E any](s []E, n int) {
	slices.Reverse(s[:n])
	slices.Reverse(s[n:])
	slices.Reverse(s)
}

// leave removes a waiter from its module's line, and reports whether it was still there.
func (t *timeSlices[M]) leave(module M, w *waiter) bool {
	for i, l := range t.ring {
		if l.module != module {
			continue
		}
		at := slices.Index(l.waiters, w)
		if at < 0 {
			return false
		}
		if l.waiters = slices.Delete(l.waiters, at, at+1); len(l.waiters) == 0 {
			t.ring = slices.Delete(t.ring, i, i+1)
		}
		return true
	}
	return false
}
