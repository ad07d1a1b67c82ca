// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"math/rand/v2"
	"testing"
)

// TestWishes_TheLastCommandCounts: replicas are asked one after the other, change one record, and lose it. An older replica removes the
// wishes from it. In the end, all know the last command.
func TestWishes_TheLastCommandCounts(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 35))
		replicas, stored, last := make([]wishes, 4), &Record{}, Wanted{}
		sync := func(w *wishes) {
			w.adopt(stored)
			if next := stored.clone(); w.add(next) {
				stored = next
			}
			w.adopt(stored)
		}
		syncAll := func() {
			for i := range 2 * len(replicas) {
				sync(&replicas[i%len(replicas)])
			}
		}
		for range 20 {
			switch at := &replicas[rng.IntN(4)]; rng.IntN(4) {
			case 0:
				stored = &Record{} // deleted, or changed by an older replica
			case 1:
				syncAll() // the record may have been lost
				last = at.ask("web", func(w *Wanted) {
					if w.Paused = rng.IntN(2) == 0; rng.IntN(2) == 0 {
						w.Trigger = w.Generation
					}
				})
				sync(at)
			default:
				sync(at)
			}
		}
		syncAll()
		for i := range replicas {
			if got := replicas[i]["web"]; got != last || stored.Wanted["web"] != last {
				t.Fatalf("seed %d: replica %d knows %+v, the record has %+v, want %+v", seed, i, got, stored.Wanted["web"], last)
			}
		}
	}
}

// TestWishes_OneOfTwoCommandsCounts: if two replicas are asked at the same time, the one whose record is stored counts for both.
func TestWishes_OneOfTwoCommandsCounts(t *testing.T) {
	var a, b wishes
	first := a.ask("web", func(w *Wanted) { w.Paused = true })
	b.ask("web", func(w *Wanted) { w.Trigger = w.Generation })
	stored := &Record{}
	if !a.add(stored) || b.add(stored) {
		t.Error("a command was not stored, or replaces another one of the same generation")
	}
	b.adopt(stored)
	if b["web"] != first {
		t.Errorf("%+v, want %+v", b["web"], first)
	}
	if next := b.ask("web", func(w *Wanted) { w.Trigger = w.Generation }); !next.Paused || next.Generation != 2 || next.Trigger != 2 {
		t.Errorf("the next command: %+v", next)
	}
}
