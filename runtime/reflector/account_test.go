// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// TestAccount_IsTheSumOfDistinctObjects compares an Account with the content of its stores, after random changes of several stores that
// have objects in common.
func TestAccount_IsTheSumOfDistinctObjects(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	account := &reflector.Account{}
	var writers []*reflector.Writer
	for range 4 {
		w := reflector.NewWriter()
		w.Account = account
		writers = append(writers, w)
	}
	var pool []*reflector.Object
	for i := range 60 {
		o, err := reflector.Pack(map[string]any{"metadata": map[string]any{
			"name": fmt.Sprint("o", i%10), "uid": fmt.Sprint("u", i%10), "resourceVersion": fmt.Sprint(i + 1), "generation": int64(r.IntN(1 << 30)),
		}}, reflector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		pool = append(pool, o)
	}
	ignore := func(reflector.Event) {}
	for range 5000 {
		w, o := writers[r.IntN(len(writers))], pool[r.IntN(len(pool))]
		switch r.IntN(5) {
		case 0, 1, 2:
			w.Apply(o, ignore)
		case 3:
			w.Delete(o, ignore)
		case 4:
			list := make([]*reflector.Object, 0, 8)
			for range r.IntN(8) {
				list = append(list, pool[r.IntN(len(pool))])
			}
			w.Replace(list, o.ResourceVersion(), ignore)
		}
		want, seen := int64(0), map[*reflector.Object]bool{}
		for _, w := range writers {
			for _, o := range w.Store().List() {
				if want += 100; !seen[o] {
					want += o.Cost() - 100
				}
				seen[o] = true
			}
		}
		if got := account.Bytes(); got != want {
			t.Fatalf("%d bytes, want %d", got, want)
		}
	}
	for _, w := range writers {
		w.Close()
	}
	if n := account.Bytes(); n != 0 {
		t.Errorf("%d bytes are charged for nothing", n)
	}
}
