// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// epoch is the time at which every test starts.
var epoch = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// after returns the time some seconds after epoch.
func after(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

type (
	keyScheduler = scheduler.Scheduler[string, string]
	request      = scheduler.Request[string, string]
	item         = scheduler.Item[string, string]
)

func newScheduler() *keyScheduler {
	return scheduler.New[string, string](scheduler.Config[string]{})
}

// popAll pops until nothing is ready, without a Done, and returns the keys in order.
func popAll(s *keyScheduler, now time.Time) []string {
	var keys []string
	for it, ok := s.Pop(now); ok; it, ok = s.Pop(now) {
		keys = append(keys, it.Key)
	}
	return keys
}

// wantPop fails the test unless popping everything that is ready at a time gives these keys.
func wantPop(t *testing.T, s *keyScheduler, now time.Time, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, popAll(s, now)); diff != "" {
		t.Fatalf("popped at +%v (-want +got):\n%s", now.Sub(epoch), diff)
	}
}

// wantCounts fails the test unless Len, Waiting and Running return these numbers.
func wantCounts(t *testing.T, s *keyScheduler, ready, waiting, running int) {
	t.Helper()
	if s.Len() != ready || s.Waiting() != waiting || s.Running() != running {
		t.Fatalf("ready %d, waiting %d, running %d; want %d, %d, %d", s.Len(), s.Waiting(), s.Running(), ready, waiting, running)
	}
}

// rule 1: one key never runs twice at once. kube-rs: scheduler_should_hold_and_release_items.
// controller-runtime: does not return a locked item; returns it as soon as unlocked.
func TestScheduler_RunningKeyIsBlockedUntilDone(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "a"})
	wantPop(t, s, epoch, "a")
	s.Schedule(after(1), request{Key: "a"})
	wantPop(t, s, after(1))
	s.Done("a")
	wantPop(t, s, after(1), "a")
	s.Done("a")
	wantPop(t, s, after(1))
	wantCounts(t, s, 0, 0, 0)
}

// rule 2: N triggers are merged into one run, even while the key runs. kube-rs:
// scheduler_should_not_reschedule_pending_items. controller-runtime: de-duplicates; enqueues a locked item (Len 1 while
// locked, returned after Done).
func TestScheduler_ManyRequestsMakeOneRun(t *testing.T) {
	s := newScheduler()
	for i := range 5 {
		s.Schedule(after(float64(i)), request{Key: "a"})
	}
	wantCounts(t, s, 1, 0, 0)
	wantPop(t, s, after(5), "a")
	wantCounts(t, s, 0, 0, 1)
	for i := range 5 {
		s.Schedule(after(float64(6+i)), request{Key: "a"})
	}
	wantCounts(t, s, 1, 0, 1)
	s.Done("a")
	wantPop(t, s, after(11), "a")
	s.Done("a")
	wantCounts(t, s, 0, 0, 0)
}

// rule 5: a key that cannot run does not block others. kube-rs:
// scheduler_pending_message_should_not_block_head_of_line.
func TestScheduler_BlockedKeyDoesNotHoldUpOthers(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "a"})
	wantPop(t, s, epoch, "a")
	s.Schedule(epoch, request{Key: "a"})
	s.Schedule(epoch, request{Key: "b"})
	wantPop(t, s, epoch, "b")
}

// kube-rs: scheduler_should_emit_items_as_requested.
// controller-runtime: TestItemIsOnlyReturnedAfterAfterHasPassed, TestMultipleItemsWithAfterAreReturnedInCorrectOrder.
func TestScheduler_RequestIsDueAtItsTime(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "late", At: after(3)})
	s.Schedule(epoch, request{Key: "early", At: after(1)})
	wantPop(t, s, after(0.999))
	wantPop(t, s, after(1), "early")
	wantPop(t, s, after(2.999))
	wantPop(t, s, after(3), "late")
}

// rule 3: the earliest time wins, and its message is used. kube-rs: scheduler_dedupe_should_keep_earlier_item,
// scheduler_dedupe_should_replace_later_item, scheduler_should_overwrite_message_with_soonest_version,
// scheduler_should_not_overwrite_message_with_later_version. controller-runtime: keeps the lowest After.
func TestScheduler_EarlierRequestWins(t *testing.T) {
	for _, tc := range []struct {
		name          string
		first, second float64 // seconds after epoch
		want          float64
		wantMsg       string
	}{
		{"later after earlier", 1, 3, 1, "first"},
		{"earlier after later", 3, 1, 1, "second"},
		{"same later time", 2, 2, 2, "second"},
		{"now after later", 3, 0, 0, "second"},
		{"later after now", 0, 3, 0, "first"},
		{"now after now", 0, 0, 0, "first"},
		{"past after later", 3, -9, 0, "second"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScheduler()
			s.Schedule(epoch, request{Key: "a", Msg: "first", At: after(tc.first)})
			s.Schedule(epoch, request{Key: "a", Msg: "second", At: after(tc.second)})
			if tc.want > 0 {
				wantPop(t, s, after(tc.want-0.001))
			}
			got, _ := s.Pop(after(tc.want))
			want := item{Key: "a", Msg: tc.wantMsg, ReadyAt: after(tc.want)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("item (-want +got):\n%s", diff)
			}
			s.Done("a")
			wantPop(t, s, after(100))
		})
	}
}

// rule 3: a trigger absorbs a pending requeue timer, which does not fire later. controller-runtime:
// TestWaitingItemIsReturnedRightAfterReadWithoutAfter.
func TestScheduler_TriggerAbsorbsTimer(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "a", At: after(300)})
	wantCounts(t, s, 0, 1, 0)
	s.Schedule(after(10), request{Key: "a"})
	wantCounts(t, s, 1, 0, 0)
	if at, ok := s.NextAt(); ok {
		t.Fatalf("a timer is left at %v", at)
	}
	wantPop(t, s, after(10), "a")
	s.Done("a")
	wantPop(t, s, after(301))
}

// kube-rs: scheduler_dedupe_should_allow_rescheduling_emitted_item.
func TestScheduler_KeyCanBeScheduledAgainAfterItsRun(t *testing.T) {
	s := newScheduler()
	for i := range 3 {
		now := after(float64(i))
		s.Schedule(now, request{Key: "a"})
		wantPop(t, s, now, "a")
		s.Done("a")
	}
}

// rule 2: a timer set while a key runs survives the run and fires at its own time, whether the run ends before or after
// it.
func TestScheduler_TimerSetDuringRunFiresOnce(t *testing.T) {
	for _, end := range []float64{1, 9} {
		s := newScheduler()
		s.Schedule(epoch, request{Key: "a"})
		wantPop(t, s, epoch, "a")
		s.Schedule(epoch, request{Key: "a", At: after(5)})
		wantCounts(t, s, 0, 1, 1)
		wantPop(t, s, after(end))
		s.Done("a")
		if end < 5 {
			wantPop(t, s, after(4.999))
		}
		wantPop(t, s, after(max(5, end)), "a")
		s.Done("a")
		wantCounts(t, s, 0, 0, 0)
	}
}

// A Merge function receives every message in the order of the requests, whichever is due sooner.
func TestScheduler_MergeSeesEveryMessageInOrder(t *testing.T) {
	s := scheduler.New[string, string](scheduler.Config[string]{
		Merge: func(pending, next string) string { return pending + "," + next },
	})
	s.Schedule(epoch, request{Key: "a", Msg: "1", At: after(5)})
	s.Schedule(epoch, request{Key: "a", Msg: "2", At: after(9)})
	s.Schedule(epoch, request{Key: "a", Msg: "3", At: after(2)})
	s.Schedule(epoch, request{Key: "a", Msg: "4"})
	s.Schedule(epoch, request{Key: "a", Msg: "5"})
	got, _ := s.Pop(epoch)
	if got.Msg != "1,2,3,4,5" {
		t.Fatalf("message %q", got.Msg)
	}
	s.Schedule(epoch, request{Key: "a", Msg: "6"})
	s.Done("a")
	if got, _ = s.Pop(epoch); got.Msg != "6" {
		t.Fatalf("message %q holds what an earlier run was given", got.Msg)
	}
}

// rule 7: the depth counts ready requests, including those whose key is running, and not those that wait.
// controller-runtime: TestItemsAreInludedInLenAndMetricsOnceTheyAreReady.
func TestScheduler_LenCountsWhatIsReady(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "a"})
	s.Schedule(epoch, request{Key: "b", At: after(1)})
	wantCounts(t, s, 1, 1, 0)
	s.Advance(after(1))
	wantCounts(t, s, 2, 0, 0)
	wantPop(t, s, after(1), "a", "b")
	s.Schedule(after(1), request{Key: "a"})
	s.Schedule(after(1), request{Key: "b", At: after(2)})
	wantCounts(t, s, 1, 1, 2)
	s.Advance(after(2))
	wantCounts(t, s, 2, 0, 2)
}

// rule 7: a forgotten key is not handed out, whatever state it was in; its run is not affected.
func TestScheduler_ForgetDropsThePendingRequest(t *testing.T) {
	s := newScheduler()
	s.Forget("unknown")
	s.Schedule(epoch, request{Key: "runs"})
	wantPop(t, s, epoch, "runs")
	s.Schedule(epoch, request{Key: "runs"})
	s.Schedule(epoch, request{Key: "ready"})
	s.Schedule(epoch, request{Key: "waits", At: after(1)})
	for _, key := range []string{"runs", "ready", "waits"} {
		s.Forget(key)
	}
	wantCounts(t, s, 0, 0, 1)
	s.Done("runs")
	wantPop(t, s, after(9))
	wantCounts(t, s, 0, 0, 0)
}

// A Done without a run changes nothing; in particular, it does not let a key run twice at once.
func TestScheduler_DoneWithoutRunIsIgnored(t *testing.T) {
	s := newScheduler()
	s.Done("unknown")
	s.Schedule(epoch, request{Key: "a"})
	s.Done("a")
	wantPop(t, s, epoch, "a")
	s.Done("a")
	s.Done("a")
	wantCounts(t, s, 0, 0, 0)
}

// rule 8: distant timers are clamped, and an early one stays in order with them.
func TestScheduler_FarTimersAreClamped(t *testing.T) {
	for name, at := range map[string]time.Time{
		"just over":    epoch.Add(scheduler.MaxDelay + 1),
		"max duration": epoch.Add(math.MaxInt64),
		"max time":     time.Unix(math.MaxInt64-62135596801, 999999999),
	} {
		t.Run(name, func(t *testing.T) {
			s := newScheduler()
			s.Schedule(epoch, request{Key: "far", At: at})
			s.Schedule(epoch, request{Key: "near", At: after(1)})
			wantPop(t, s, after(1), "near")
			if next, ok := s.NextAt(); !ok || !next.Equal(epoch.Add(scheduler.MaxDelay)) {
				t.Fatalf("next timer at %v, %v", next, ok)
			}
			wantPop(t, s, epoch.Add(scheduler.MaxDelay-1))
			wantPop(t, s, epoch.Add(scheduler.MaxDelay), "far")
		})
	}
}

// If the clock is set back, nothing is lost and nothing runs early.
func TestScheduler_ClockSetBackLosesNothing(t *testing.T) {
	s := newScheduler()
	s.Schedule(after(10), request{Key: "a", At: after(11)})
	s.Schedule(after(5), request{Key: "b"})
	s.Schedule(after(5), request{Key: "c", At: after(6)})
	wantPop(t, s, after(5), "b")
	wantPop(t, s, after(6), "c")
	wantPop(t, s, after(11), "a")
}

// rule 5: the running keys are listed in the order in which they were handed out.
func TestScheduler_RunningKeysListsWhatRuns(t *testing.T) {
	s := newScheduler()
	for _, key := range []string{"a", "b", "c"} {
		s.Schedule(epoch, request{Key: key})
	}
	wantPop(t, s, epoch, "a", "b", "c")
	s.Done("b")
	if diff := cmp.Diff([]string{"a", "c"}, slices.Collect(s.RunningKeys())); diff != "" {
		t.Fatalf("running (-want +got):\n%s", diff)
	}
}

// rule 7: adding a known key, handing it out, and running it again allocate nothing, with or without a timer.
func TestScheduler_KnownKeyAllocatesNothing(t *testing.T) {
	s := newScheduler()
	now := epoch
	round := func() {
		s.Schedule(now, request{Key: "a", At: now.Add(time.Second)})
		s.Schedule(now, request{Key: "a"})
		s.Schedule(now, request{Key: "a"})
		s.Pop(now)
		s.Schedule(now, request{Key: "a"})
		s.Done("a")
		s.Pop(now)
		s.Done("a")
		now = now.Add(time.Second)
	}
	round()
	if got := testing.AllocsPerRun(1000, round); got != 0 {
		t.Fatalf("%v allocations a round", got)
	}
}

// A burst of keys frees its memory once it is processed.
func TestScheduler_BurstGivesMemoryBack(t *testing.T) {
	s := newScheduler()
	heapInUse := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heapInUse()
	const keys = 50_000
	for i := range keys {
		s.Schedule(epoch, request{Key: strconv.Itoa(i), At: after(float64(i % 2))})
	}
	burst := heapInUse() - before
	for _, key := range popAll(s, after(1)) {
		s.Done(key)
	}
	left := int64(heapInUse()) - int64(before)
	if burst < keys*64 || left > int64(burst/10) {
		t.Fatalf("burst of %d keys takes %d bytes and leaves %d", keys, burst, left)
	}
	runtime.KeepAlive(s)
}
