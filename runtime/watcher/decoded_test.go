// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Decoded bytes count for the current subscribers in equal parts: the sum is the total, and a subscriber that joins
// later does not count earlier bytes.
func TestDecoded_IsDividedAmongSubscriptions(t *testing.T) {
	bubble(t, func(t *testing.T, b *bed) {
		source := watcher.Source{Resource: configMaps, LabelSelector: "x=y"} // not that of b.u
		var first, second watcher.Decoded
		read := func(d *watcher.Decoded) int64 {
			synctest.Wait()
			total, _ := d.Read(time.Now())
			return total
		}
		join := func(d *watcher.Decoded) *user {
			u := newUser(t)
			u.count = d
			u.subscribe(b.set, source)
			synctest.Wait()
			return u
		}
		join(&first)
		listed := read(&first)
		if listed == 0 {
			t.Error("the list counts for nobody")
		}
		u := join(&second)
		if n := read(&second); n != 0 || read(&first) != listed {
			t.Errorf("%d bytes for who joins a watch", n)
		}
		for i := range 10 {
			b.cm.set("a", i+2)
			b.u.expect("Applied ns/a")
		}
		shared, n := read(&first)-listed, read(&second)
		if n == 0 || shared < n || shared > n+10 { // the remainder of each event
			t.Errorf("of a shared watch %d and %d bytes", shared, n)
		}
		u.end()
		b.cm.set("a", 20)
		b.u.expect("Applied ns/a")
		if read(&second) != n || read(&first) <= listed+shared {
			t.Error("who has left counts, or who is left does not")
		}
		if _, rate := first.Read(time.Now().Add(time.Hour)); rate > 1 {
			t.Errorf("after an hour of nothing, %v bytes a second", rate)
		}
	})
}
