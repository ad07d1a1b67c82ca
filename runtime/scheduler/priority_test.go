// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// rule 4: FIFO within a priority, in the order of becoming due, and the higher priority first. controller-runtime: returns items in order;
// TestHighPriorityItemsAreReturnedBeforeLowPriorityItemMultipleTimes (strict order, FIFO inside).
func TestScheduler_FIFOWithinPriority(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "timer2", At: after(2)})
	s.Schedule(epoch, request{Key: "timer1", At: after(1)})
	s.Schedule(epoch, request{Key: "timer2b", At: after(2)})
	s.Schedule(epoch, request{Key: "low1", Priority: scheduler.Low})
	s.Schedule(epoch, request{Key: "low2", Priority: scheduler.Low})
	s.Schedule(after(1.5), request{Key: "between"})
	s.Schedule(after(3), request{Key: "last"})
	wantPop(t, s, after(3), "timer1", "between", "timer2", "timer2b", "last", "low1", "low2")
}

// rule 4: a duplicate does not change the position of a ready key.
func TestScheduler_DuplicateKeepsItsPlace(t *testing.T) {
	s := newScheduler()
	for _, key := range []string{"a", "b", "c", "a", "b"} {
		s.Schedule(epoch, request{Key: key})
	}
	wantPop(t, s, epoch, "a", "b", "c")
}

// rule 4: priority only rises. controller-runtime: keeps the highest priority; never decreases it.
func TestScheduler_PriorityNeverFalls(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "low", Priority: scheduler.Low})
	s.Schedule(epoch, request{Key: "a"})
	s.Schedule(epoch, request{Key: "a", Priority: scheduler.Low})
	s.Schedule(epoch, request{Key: "b", At: after(1)})
	s.Schedule(epoch, request{Key: "b", At: after(1), Priority: scheduler.Low})
	wantPop(t, s, after(1), "a", "b", "low")
}

// rule 4: a request whose priority rises goes to the end of the higher class, ahead of its old class.
// controller-runtime: jumps ahead if raised; FIFO in the new priority after a raise.
func TestScheduler_RaiseGoesToTheEndOfTheHigherClass(t *testing.T) {
	s := newScheduler()
	for _, key := range []string{"low1", "low2", "low3"} {
		s.Schedule(epoch, request{Key: key, Priority: scheduler.Low})
	}
	s.Schedule(epoch, request{Key: "normal1"})
	s.Schedule(epoch, request{Key: "low2"})
	s.Schedule(epoch, request{Key: "normal2"})
	wantPop(t, s, epoch, "normal1", "low2", "normal2", "low1", "low3")
}

// rule 4: a request that waits, or that is blocked by a run, is raised too.
// controller-runtime: TestHighPriorityItemThatBecameReadyIsReturnedBeforeLowPriorityItem.
func TestScheduler_RaiseReachesWaitingAndBlockedRequests(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "blocked"})
	wantPop(t, s, epoch, "blocked")
	s.Schedule(epoch, request{Key: "blocked", Priority: scheduler.Low})
	s.Schedule(epoch, request{Key: "blocked"})
	s.Schedule(epoch, request{Key: "waits", At: after(5), Priority: scheduler.Low})
	s.Schedule(epoch, request{Key: "waits", At: after(1)})
	s.Schedule(epoch, request{Key: "low", Priority: scheduler.Low})
	s.Done("blocked")
	wantPop(t, s, after(1), "blocked", "waits", "low")
}

// rule 4: a resync of an object that has a requeue competes as Low until the requeue is due, and then as Normal.
func TestScheduler_ResyncDoesNotTakeThePriorityOfARequeue(t *testing.T) {
	s := newScheduler()
	for _, key := range []string{"a", "b", "c"} {
		s.Schedule(epoch, request{Key: key, At: after(60)})
		s.Schedule(epoch, request{Key: key, Priority: scheduler.Low})
	}
	s.Schedule(epoch, request{Key: "changed"})
	wantPop(t, s, epoch, "changed", "a", "b", "c")
	for _, key := range []string{"changed", "a", "b", "c"} {
		s.Done(key)
	}
	s.Schedule(epoch, request{Key: "listed", Priority: scheduler.Low})
	s.Schedule(epoch, request{Key: "requeued", Priority: scheduler.Low})
	s.Schedule(epoch, request{Key: "requeued", At: after(60)})
	if at, ok := s.NextAt(); !ok || !at.Equal(after(60)) || s.Waiting() != 0 {
		t.Errorf("next at %v, %t, %d waiting", at, ok, s.Waiting())
	}
	wantPop(t, s, after(60), "requeued", "listed")
}

// rule 4: priority belongs to the request, not to the key: after its run, a raised key is Low again if it is requested
// as Low.
func TestScheduler_PriorityEndsWithTheRun(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "a"})
	wantPop(t, s, epoch, "a")
	s.Done("a")
	s.Schedule(epoch, request{Key: "a", Priority: scheduler.Low})
	s.Schedule(epoch, request{Key: "b"})
	wantPop(t, s, epoch, "b", "a")
}

// rule 4: a key that is retriggered during each of its runs takes turns with the others.
func TestScheduler_HotKeyTakesTurns(t *testing.T) {
	s := newScheduler()
	for _, key := range []string{"hot", "b", "c"} {
		s.Schedule(epoch, request{Key: key})
	}
	var got []string
	for range 5 {
		it, _ := s.Pop(epoch)
		s.Schedule(epoch, request{Key: it.Key})
		s.Done(it.Key)
		got = append(got, it.Key)
	}
	if want := "[hot b c hot b]"; fmt.Sprint(got) != want {
		t.Fatalf("handed out %v, want %s", got, want)
	}
}

// rule 4: waiting raises priority. There are always Normal requests here, and the Low request with n others before it
// is still handed out by the (n+1)*(MaxPassedOver+1)th turn, and not before Normal has had MaxPassedOver turns for
// each.
func TestScheduler_LowIsServedWithinItsBound(t *testing.T) {
	s := newScheduler()
	const lows = 20
	for i := range lows {
		s.Schedule(epoch, request{Key: fmt.Sprint("low", i), Priority: scheduler.Low})
	}
	served := 0
	for turn := 1; served < lows; turn++ {
		s.Schedule(epoch, request{Key: fmt.Sprint("normal", turn)})
		s.Schedule(epoch, request{Key: fmt.Sprint("more", turn)})
		it, ok := s.Pop(epoch)
		if !ok {
			t.Fatal("nothing ready")
		}
		due := (served + 1) * (scheduler.MaxPassedOver + 1)
		isLow := it.Priority == scheduler.Low
		if isLow != (turn == due) {
			t.Fatalf("turn %d gave %s; low%d belongs to turn %d", turn, it.Key, served, due)
		}
		if isLow {
			served++
		}
		s.Done(it.Key)
	}
}

// rule 4: a Low request does not benefit from others of its class that were passed over or processed before it came.
func TestScheduler_EmptyClassHasNoClaims(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "low", Priority: scheduler.Low})
	for i := range scheduler.MaxPassedOver {
		s.Schedule(epoch, request{Key: fmt.Sprint("a", i)})
		s.Pop(epoch)
	}
	s.Forget("low")
	s.Schedule(epoch, request{Key: "b"})
	wantPop(t, s, epoch, "b")
	s.Schedule(epoch, request{Key: "late", Priority: scheduler.Low})
	s.Schedule(epoch, request{Key: "c"})
	wantPop(t, s, epoch, "c", "late")
}

// A priority out of range counts as the nearest one and never breaks the scheduler.
func TestScheduler_PriorityOutOfRangeIsClamped(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "lowest", Priority: -128})
	s.Schedule(epoch, request{Key: "low", Priority: scheduler.Low})
	s.Schedule(epoch, request{Key: "highest", Priority: 127})
	s.Schedule(epoch, request{Key: "normal"})
	s.Schedule(epoch, request{Key: "normal", Priority: 100})
	wantPop(t, s, epoch, "highest", "normal", "lowest", "low")
	if got := fmt.Sprint(scheduler.Low, scheduler.Normal, scheduler.Priority(127)); got != "low normal normal" {
		t.Fatalf("names: %s", got)
	}
}
