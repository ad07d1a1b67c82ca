// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Scan compared with sorting everything, with objects that are created and deleted between the pages: each object that
// exists all the time is yielded once, in order, from any starting point, in one namespace or in all.
func TestStore_ScanIsOrderedAndResumes(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		w := reflector.NewWriter()
		random := func() reflector.ObjectRef {
			return reflector.ObjectRef{Namespace: fmt.Sprint("ns", rnd.IntN(4)), Name: fmt.Sprint("n", rnd.IntN(1000))}
		}
		steady := map[reflector.ObjectRef]bool{}
		for range 1500 {
			o := state(t, random(), 1, 1)
			steady[o.Ref()] = true
			w.Apply(o, func(reflector.Event) {})
		}
		namespace := []string{"", "ns2", "ns0", "none"}[seed%4]
		var want, got []reflector.ObjectRef
		for ref := range steady {
			if namespace == "" || ref.Namespace == namespace {
				want = append(want, ref)
			}
		}
		slices.SortFunc(want, func(a, b reflector.ObjectRef) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		var after reflector.ObjectRef
		for pages, more := 0, true; more; pages++ {
			more = false
			limit := 1 + rnd.IntN(300)
			for o := range w.Store().Scan(namespace, after) {
				if steady[o.Ref()] {
					got = append(got, o.Ref())
				}
				if after = o.Ref(); limit == 0 {
					more = true
					break
				}
				limit--
			}
			for range 200 {
				switch o := state(t, random(), 1, 2+pages); {
				case steady[o.Ref()]:
				case rnd.IntN(2) == 0:
					w.Apply(o, func(reflector.Event) {})
				default:
					w.Delete(o, func(reflector.Event) {})
				}
			}
		}
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d: %d objects in order %v..., want %d", seed, len(got), got[:min(3, len(got))], len(want))
		}
	}
}

func TestStore_ScanOfNothing(t *testing.T) {
	for range reflector.NewWriter().Store().Scan("", reflector.ObjectRef{}) {
		t.Error("an empty store yields an object")
	}
}
