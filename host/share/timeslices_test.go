// SPDX-License-Identifier: Apache-2.0

package share

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// served hands out n turns, one after the other, to waiters who wait again at
// once, and returns how many each module had.
func served(t *timeSlices[string], owner map[*waiter]string, n int) map[string]int {
	had := map[string]int{}
	for range n {
		w := t.next()
		had[owner[w]]++
		t.wait("", owner[w], w)
	}
	return had
}

// A module gets as many turns as another, with however many instances it waits.
func TestTimeSlices_ModulesGetAnEqualNumber(t *testing.T) {
	var timeSlices timeSlices[string]
	owner := map[*waiter]string{}
	for module, n := range map[string]int{"one": 1, "nine": 9, "three": 3} {
		for range n {
			w := &waiter{}
			owner[w] = module
			timeSlices.wait("", module, w)
		}
	}
	if diff := cmp.Diff(map[string]int{"one": 100, "nine": 100, "three": 100}, served(&timeSlices, owner, 300)); diff != "" {
		t.Error(diff)
	}
}

// A tenant gets as many turns as another, with however many modules it waits.
func TestTimeSlices_TenantsGetAnEqualNumber(t *testing.T) {
	const many = 60
	var timeSlices timeSlices[int]
	tenant := func(module int) string { return map[bool]string{true: "one", false: "many"}[module == many] }
	owner, had := map[*waiter]int{}, map[int]int{}
	for module := range many + 1 {
		w := &waiter{}
		owner[w] = module
		timeSlices.wait(tenant(module), module, w)
	}
	for range 20 * many {
		w := timeSlices.next()
		had[owner[w]]++
		timeSlices.wait(tenant(owner[w]), owner[w], w)
	}
	for module := range many {
		if had[module] != 10 {
			t.Errorf("module %d of the tenant with many had %d turns, want 10", module, had[module])
		}
	}
	if had[many] != 10*many {
		t.Errorf("the tenant with one module had %d turns of %d", had[many], 20*many)
	}
}

// Whatever is asked in whatever order: next serves the tenant that has waited longest since
// its last turn, of its modules likewise, and of the module's waiters the first, as a dumb
// list of all waiters says.
func TestTimeSlices_AgreeWithAModel(t *testing.T) {
	type entry struct {
		module int
		w      *waiter
	}
	tenant := func(module int) string { return string(rune('a' + module%3)) }
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var got timeSlices[int]
		var list []entry          // in the order of arrival
		var order []int           // modules with waiters, the next one first
		var tenants []string      // with waiters, the next one first
		remove := func(e entry) { // forgets what no longer waits
			list = slices.DeleteFunc(list, func(x entry) bool { return x == e })
			if !slices.ContainsFunc(list, func(x entry) bool { return x.module == e.module }) {
				order = slices.DeleteFunc(order, func(m int) bool { return m == e.module })
			}
			if !slices.ContainsFunc(list, func(x entry) bool { return tenant(x.module) == tenant(e.module) }) {
				tenants = slices.DeleteFunc(tenants, func(n string) bool { return n == tenant(e.module) })
			}
		}
		for range 200 {
			switch rng.IntN(4) {
			case 0, 1:
				e := entry{rng.IntN(7), &waiter{}}
				got.wait(tenant(e.module), e.module, e.w)
				list = append(list, e)
				if !slices.Contains(order, e.module) {
					order = append(order, e.module)
				}
				if n := tenant(e.module); !slices.Contains(tenants, n) {
					tenants = append(tenants, n)
				}
			case 2:
				var want entry
				if len(tenants) > 0 {
					first := tenants[0]
					module := order[slices.IndexFunc(order, func(m int) bool { return tenant(m) == first })]
					want = list[slices.IndexFunc(list, func(e entry) bool { return e.module == module })]
					remove(want)
					if i := slices.Index(order, module); i >= 0 {
						order = append(slices.Delete(order, i, i+1), module)
					}
					if i := slices.Index(tenants, first); i >= 0 {
						tenants = append(slices.Delete(tenants, i, i+1), first)
					}
				}
				if w := got.next(); w != want.w {
					t.Fatalf("seed %d: another waiter is next", seed)
				}
			case 3:
				e := entry{rng.IntN(7), &waiter{}} // one that does not wait
				if len(list) > 0 && rng.IntN(3) > 0 {
					e = list[rng.IntN(len(list))]
				}
				had := slices.Contains(list, e)
				remove(e)
				if left := got.leave(tenant(e.module), e.module, e.w); left != had {
					t.Fatalf("seed %d: leave returned %v, want %v", seed, left, had)
				}
			}
		}
	}
}
