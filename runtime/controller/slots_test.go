// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/shard/slots"
)

func newTable(n int) *slotTable {
	c := &Controller{cfg: Config{Slots: &Slots{Count: func() int { return n }}}}
	c.slots = newSlotTable(c)
	c.SplitBy(slots.Namespace)
	return c.slots
}

// Whatever runs begin meanwhile: once a slot is closed, none of its objects are run.
func TestSlots_NothingRunsInAClosedSlot(t *testing.T) {
	const n, keys = 4, 40
	table := newTable(n)
	var running [n]atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 16))
			for ctx.Err() == nil {
				key := abi.Key{Namespace: fmt.Sprintf("%x", rng.IntN(keys)*7919), Name: fmt.Sprint(w)} // one worker runs a key
				slot := slots.Of(key.Namespace, n)
				within, leave, ok := table.enter(ctx, key)
				if !ok {
					continue
				}
				running[slot].Add(1)
				table.note(key, &abi.Write{Resource: "r", Key: key, ResourceVersion: "1"})
				if within.Err() != nil {
					t.Error("a run begins that has ended")
				}
				running[slot].Add(-1)
				leave(0)
			}
		})
	}
	rng := rand.New(rand.NewPCG(99, 16))
	for range 3000 {
		slot := rng.IntN(n)
		table.open(slot)
		table.close(ctx, slot, time.Minute)
		if got := running[slot].Load(); got != 0 {
			t.Fatalf("%d objects of slot %d run, which is closed", got, slot)
		}
	}
	stop()
	wg.Wait()
}

// Closing a slot waits for a run, and cancels it when its time is up.
func TestSlots_ARunHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(1)
		table.open(0)
		within, leave, ok := table.enter(t.Context(), abi.Key{Namespace: "a", Name: "b"})
		if !ok {
			t.Fatal("an open slot lets no run in")
		}
		table.note(abi.Key{Namespace: "a", Name: "b"}, &abi.Write{Resource: "r", Key: abi.Key{Namespace: "a"}, ResourceVersion: "7"})
		table.note(abi.Key{Namespace: "a", Name: "b"}, &abi.Write{Resource: "r", Key: abi.Key{Namespace: "a"}, ResourceVersion: "5"})
		ended := make(chan []abi.Write)
		begin := time.Now()
		go func() { ended <- table.close(context.Background(), 0, 10*time.Second) }()
		synctest.Wait()
		if table.admits(&queue.Request{Ref: abi.Key{Namespace: "a", Name: "c"}}) {
			t.Error("a slot that closes admits an object")
		}
		<-within.Done()
		if took := time.Since(begin); took != 10*time.Second || !errors.Is(context.Cause(within), errMoved) {
			t.Errorf("the run was cancelled after %v, for %v", took, context.Cause(within))
		}
		leave(3 * time.Second)
		table.c.Spent(func(slot int, spent time.Duration) {
			if slot != 0 || spent != 3*time.Second {
				t.Errorf("slot %d has cost %v", slot, spent)
			}
		})
		if wrote := <-ended; len(wrote) != 1 || wrote[0].ResourceVersion != "7" {
			t.Errorf("the last write is %v", wrote)
		}
	})
}

// A change that arrives for a slot that is watched and not open yet is run when it opens. Listed objects and slots of others need not be.
func TestSlots_AChangeBeforeItOpensIsNotLost(t *testing.T) {
	table := newTable(1)
	changed := &queue.Request{Ref: abi.Key{Namespace: "a", Name: "b"}, Reason: abi.Reason{Type: abi.ReasonObjectUpdated}}
	table.admits(changed)
	table.warm(0, false)
	if len(table.missed(0)) > 0 {
		t.Error("a slot that is not watched has missed something")
	}
	table.admits(&queue.Request{Ref: abi.Key{Namespace: "a", Name: "c"}, Low: true})
	if table.admits(changed) {
		t.Error("admits it before the slot is open")
	}
	if missed := table.open(0); len(missed) != 1 || missed[changed.Ref].Type != abi.ReasonObjectUpdated {
		t.Errorf("missed %v", missed)
	}
	if !table.admits(changed) || len(table.missed(0)) > 0 {
		t.Error("an open slot misses something")
	}
	table.close(t.Context(), 0, time.Minute)
	table.miss(changed.Ref, changed.Reason)
	if len(table.missed(0)) != 1 {
		t.Error("a change after the slot was closed is lost")
	}
	table.cool(0)
	if len(table.missed(0)) > 0 {
		t.Error("something is left of a slot of others")
	}
}

// Before the split field is known, no object belongs to this replica.
func TestSlots_NoneBeforeTheKeyIsKnown(t *testing.T) {
	c := &Controller{cfg: Config{Slots: &Slots{Count: func() int { return 1 }}}}
	c.slots = newSlotTable(c)
	c.slots.open(0)
	if c.slots.admits(&queue.Request{Ref: abi.Key{Namespace: "a", Name: "b"}}) {
		t.Error("admits an object")
	}
	if _, _, ok := c.slots.enter(t.Context(), abi.Key{Namespace: "a", Name: "b"}); ok {
		t.Error("lets an object run")
	}
}
