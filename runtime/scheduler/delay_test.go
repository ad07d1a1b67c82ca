// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// A delayed key is not handed out before its time, whatever is requested; the requests lead to one run then, and none
// is lost (rule 2).
func TestDelay_BeatsEveryRequest(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "a"})
	wantPop(t, s, epoch, "a")
	s.Delay(epoch, "a", after(10))
	s.Schedule(epoch, request{Key: "a"})
	s.Done("a")
	s.Schedule(after(1), request{Key: "a", At: after(2)})
	s.Schedule(after(3), request{Key: "a"})
	s.Schedule(after(3), request{Key: "b"})
	wantPop(t, s, after(9.999), "b")
	wantCounts(t, s, 0, 1, 1)
	it, ok := s.Pop(after(10))
	if !ok || it.Key != "a" || !it.ReadyAt.Equal(after(10)) {
		t.Fatalf("item %+v, %v", it, ok)
	}
	s.Done("a")
	wantPop(t, s, after(100))
}

// A delay does not bring a later request forward, and ends with the next run.
func TestDelay_DoesNotHurryAndEndsWithTheRun(t *testing.T) {
	s := newScheduler()
	s.Delay(epoch, "a", after(5))
	s.Schedule(epoch, request{Key: "a", At: after(8)})
	wantPop(t, s, after(7.999))
	wantPop(t, s, after(8), "a")
	s.Done("a")
	s.Schedule(after(8), request{Key: "a"})
	wantPop(t, s, after(8), "a")
}

// A ready key that is delayed waits again, and removing the delay makes it ready at once.
func TestDelay_AppliesToReadyKeysAndCanBeLifted(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "a"})
	s.Delay(epoch, "a", after(60))
	wantPop(t, s, after(1))
	s.Delay(after(1), "a", after(30))
	wantPop(t, s, after(29))
	s.Delay(after(29), "a", time.Time{})
	wantPop(t, s, after(29), "a")
	s.Delay(after(29), "unknown", time.Time{})
	wantCounts(t, s, 0, 0, 1)
}

// A key that has only a delay is removed once the delay has expired, and does not count before.
func TestDelay_LeavesNothingBehind(t *testing.T) {
	s := newScheduler()
	s.Delay(epoch, "a", after(10))
	wantCounts(t, s, 0, 0, 0)
	s.Forget("a")
	if at, ok := s.NextAt(); !ok || !at.Equal(after(10)) {
		t.Fatalf("next timer at %v, %v", at, ok)
	}
	s.Advance(after(10))
	if at, ok := s.NextAt(); ok {
		t.Fatalf("a timer is left at %v", at)
	}
	if diff := cmp.Diff(scheduler.View[string]{}, s.Lookup("a")); diff != "" {
		t.Fatalf("view (-want +got):\n%s", diff)
	}
}

// rule 8: a distant delay is clamped.
func TestDelay_IsClamped(t *testing.T) {
	s := newScheduler()
	s.Schedule(epoch, request{Key: "a"})
	s.Delay(epoch, "a", epoch.Add(10*scheduler.MaxDelay))
	wantPop(t, s, epoch.Add(scheduler.MaxDelay-1))
	wantPop(t, s, epoch.Add(scheduler.MaxDelay), "a")
}

// Lookup distinguishes the states, and what each of them waits for.
func TestScheduler_LookupSaysWhatAKeyWaitsFor(t *testing.T) {
	s := newDebounced(2*time.Second, 0)
	s.Schedule(epoch, request{Key: "runs", Msg: "run", Priority: scheduler.Low, At: epoch})
	s.Schedule(epoch, request{Key: "blocked", At: epoch})
	wantPop(t, s, epoch, "blocked", "runs")
	s.Schedule(after(1), request{Key: "ready", At: after(1)})
	s.Schedule(after(1), request{Key: "blocked", Msg: "again", At: after(1)})
	s.Schedule(after(1), request{Key: "waits", At: after(60)})
	s.Schedule(after(1), request{Key: "debounced", Priority: scheduler.Low})
	s.Schedule(after(1), request{Key: "held"})
	s.Delay(after(1), "held", after(9))
	for key, want := range map[string]scheduler.View[string]{
		"unknown":   {},
		"runs":      {Running: true, Since: epoch, Msg: "run", Priority: scheduler.Low},
		"blocked":   {Running: true, Since: epoch, Msg: "again", State: scheduler.Blocked, At: after(1)},
		"ready":     {State: scheduler.Ready, At: after(1)},
		"waits":     {State: scheduler.Waiting, At: after(60)},
		"debounced": {State: scheduler.Debounced, At: after(3), Priority: scheduler.Low},
		"held":      {State: scheduler.Delayed, At: after(9)},
	} {
		if diff := cmp.Diff(want, s.Lookup(key)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if got := s.Lookup("held").State.String(); got != "delayed" {
		t.Errorf("name %q", got)
	}
}
