// SPDX-License-Identifier: Apache-2.0

package history

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLRU_AgreesWithModel compares it with a list of the used values, the last one first.
func TestLRU_AgreesWithModel(t *testing.T) {
	type item struct{ key, value, size int }
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	const limit = 100
	l, model := newLRU[int](limit, reset[int]), []item{}
	for step := range 20_000 {
		key := r.IntN(20)
		at := slices.IndexFunc(model, func(i item) bool { return i.key == key })
		if r.IntN(4) == 0 {
			if l.forget(key); at >= 0 {
				model = slices.Delete(model, at, at+1)
			}
		} else {
			k, size := l.use(key), r.IntN(limit+10)
			it := item{key: key}
			if at >= 0 {
				it = model[at]
				model = slices.Delete(model, at, at+1)
			}
			if k.value != it.value {
				t.Fatalf("step %d: %d has %d, want %d", step, key, k.value, it.value)
			}
			k.value, it.value, it.size = step, step, size
			l.resize(k, size)
			model = slices.Insert(model, 0, it)
			for total(model, func(i item) int { return i.size }) > limit {
				model = model[:len(model)-1]
			}
		}
		var got []item
		for k := l.ends.next; k != &l.ends; k = k.next {
			got = append(got, item{k.key, k.value, k.size})
			if v := l.get(k.key); v == nil || *v != k.value {
				t.Fatalf("step %d: %d is not found", step, k.key)
			}
		}
		if !slices.Equal(got, model) || len(l.byKey) != len(model) || l.size != total(model, func(i item) int { return i.size }) {
			t.Fatalf("step %d: %v of %d bytes, want %v", step, got, l.size, model)
		}
	}
}

func total[T any](list []T, of func(T) int) (n int) {
	for _, v := range list {
		n += of(v)
	}
	return n
}
