// SPDX-License-Identifier: Apache-2.0

package watcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// An abandoned list that ends late releases neither the turn nor the charge of the next list of its watch, and what still arrives of it is not
// charged.
func TestListing_AnAbandonedListDoesNotAffectTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant := NewTenant(1<<20, 0, nil)
		store := reflector.NewWriter().Store()
		kind := tenant.join(Source{}, store, false)
		object := func(name string) *reflector.Object {
			o, err := reflector.Pack(map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": name, "uid": name, "resourceVersion": "1"}}, reflector.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		list := func() *listing { return kind.list(t.Context(), store) }
		add := func(l *listing, name string) {
			if err := l.add(object(name), nil); err != nil {
				t.Fatal(err)
			}
		}
		first := list()
		add(first, "a")
		first.end()
		second := list()
		add(second, "b")
		charged := tenant.Bytes()
		add(first, "c")
		first.end()
		if n := tenant.Bytes(); n != charged || n == 0 {
			t.Errorf("%d bytes are charged, want the %d of the second list", n, charged)
		}
		began := time.Now()
		third := list()
		if d := time.Since(began); d != maxTurn {
			t.Errorf("the third list waited %v for the second", d)
		}
		third.end()
		second.end()
		began = time.Now()
		list().end()
		if d := time.Since(began); d != 0 || tenant.Bytes() != 0 {
			t.Errorf("a list waited %v, and %d bytes are charged, after the end of all others", d, tenant.Bytes())
		}
	})
}
