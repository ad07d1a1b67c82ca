// SPDX-License-Identifier: Apache-2.0

package reflector_test

import (
	"fmt"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// One writer and many readers: each snapshot is one of the contents that were written as a whole (rule 11), under the
// race detector.
func TestStore_HammerReadersDuringReplace(t *testing.T) {
	const size = 50
	generations := make([][]*reflector.Object, 8)
	for g := range generations {
		for i := range size {
			generations[g] = append(generations[g], state(t, name(fmt.Sprint("n", i+g)), g, g+1))
		}
	}
	w := reflector.NewWriter()
	w.Replace(generations[0], "1", func(reflector.Event) {})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := oneGeneration(w.Store().List(), size); err != nil {
					t.Error(err)
					return
				}
				if err := ascends(w.Store().Scan("", reflector.ObjectRef{}), size); err != nil {
					t.Error(err)
					return
				}
				index := &abi.Index{Name: "n"} // without an index entry
				if err := ascends(w.Store().Indexed(index, "", reflector.ObjectRef{}), size); err != nil {
					t.Error(err)
					return
				}
				o := w.Store().Get(name("n7")) // in all generations
				w.Store().Learn(&abi.Index{Name: "other"}, []abi.IndexEntry{entryOf(o)})
				w.Store().Get(name("n3"))
				w.Store().Len()
				w.Store().Bytes()
			}
		})
	}
	for i := range 200 {
		w.Replace(generations[i%len(generations)], fmt.Sprint(i+1), func(reflector.Event) {})
	}
	close(stop)
	readers.Wait()
}

func oneGeneration(list []*reflector.Object, size int) error {
	for _, o := range list {
		if o.UID() != list[0].UID() {
			return fmt.Errorf("snapshot mixes %s and %s", o.UID(), list[0].UID())
		}
	}
	if len(list) != size {
		return fmt.Errorf("snapshot has %d objects, want %d", len(list), size)
	}
	return nil
}

// ascends checks the result of a scan of a content of size objects that fits into one page.
func ascends(scan iter.Seq[*reflector.Object], size int) error {
	last, n := "", 0
	for o := range scan {
		if n++; o.Ref().Name <= last {
			return fmt.Errorf("scan: %s after %s", o.Ref().Name, last)
		}
		last = o.Ref().Name
	}
	if n != size {
		return fmt.Errorf("scan of %d objects, want %d", n, size)
	}
	return nil
}

// Many waiters, under the race detector, while versions arrive through events, bookmarks and lists: each wait ends, and
// never before its version is included.
func TestStore_HammerAwaitVersion(t *testing.T) {
	const last = 400
	w := reflector.NewWriter()
	states := make([]*reflector.Object, last+1)
	for i := range states {
		states[i] = state(t, name("a"), 1, i)
	}
	w.Replace(nil, "1", func(reflector.Event) {})
	var version atomic.Int64 // at most the version that the writer is about to add
	var waiters sync.WaitGroup
	for g := range 8 {
		waiters.Go(func() {
			for i := 2 + g; i <= last; i += 1 + g%3 {
				if err := w.Store().AwaitVersion(t.Context(), name("a"), strconv.Itoa(i)); err != nil {
					t.Error(err)
				}
				if v := version.Load(); v < int64(i) {
					t.Errorf("version %d was awaited, the store has %d at most", i, v)
				}
			}
		})
	}
	for i := 2; i <= last; i++ {
		version.Store(int64(i))
		switch i % 4 {
		case 0:
			w.Replace([]*reflector.Object{states[i]}, strconv.Itoa(i), func(reflector.Event) {})
		case 1:
			w.Advance(strconv.Itoa(i))
		default:
			w.Apply(states[i], func(reflector.Event) {})
		}
	}
	waiters.Wait()
}
