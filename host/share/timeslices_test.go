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
		t.wait(owner[w], w)
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
			timeSlices.wait(module, w)
		}
	}
	if diff := cmp.Diff(map[string]int{"one": 100, "nine": 100, "three": 100}, served(&timeSlices, owner, 300)); diff != "" {
		t.Error(diff)
	}
}

// Whatever is asked in whatever order: next serves the module that has waited
// longest since its last turn, and of its waiters the first, as a dumb list of
// all waiters says.
func TestTimeSlices_AgreeWithAModel(t *testing.T) {
	type entry struct {
		module int
		w      *waiter
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var got timeSlices[int]
		var list []entry // in the order of arrival
		var order []int  // modules with waiters, the next one first
		for range 200 {
			switch rng.IntN(4) {
			case 0, 1:
				e := entry{rng.IntN(4), &waiter{}}
				got.wait(e.module, e.w)
				list = append(list, e)
				if !slices.Contains(order, e.module) {
					order = append(order, e.module)
				}
			case 2:
				var want *waiter
				if len(order) > 0 {
					module := order[0]
					i := slices.IndexFunc(list, func(e entry) bool { return e.module == module })
					want = list[i].w
					list = slices.Delete(list, i, i+1)
					order = order[1:]
					if slices.ContainsFunc(list, func(e entry) bool { return e.module == module }) {
						order = append(order, module)
					}
				}
				if w := got.next(); w != want {
					t.Fatalf("seed %d: another waiter is next", seed)
				}
			case 3:
				e := entry{rng.IntN(4), &waiter{}} // one that does not wait
				if len(list) > 0 && rng.IntN(3) > 0 {
					e = list[rng.IntN(len(list))]
				}
				had := slices.Contains(list, e)
				list = slices.DeleteFunc(list, func(x entry) bool { return x == e })
				if !slices.ContainsFunc(list, func(x entry) bool { return x.module == e.module }) {
					order = slices.DeleteFunc(order, func(m int) bool { return m == e.module })
				}
				if left := got.leave(e.module, e.w); left != had {
					t.Fatalf("seed %d: leave returned %v, want %v", seed, left, had)
				}
			}
		}
	}
}
