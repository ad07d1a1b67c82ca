// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

func newDebounced(quiet, limit time.Duration) *keyScheduler {
	return scheduler.New[string, string](scheduler.Config[string]{Debounce: scheduler.Debounce{Quiet: quiet, Max: limit}})
}

// rule 6: a request is run when no other has come for Quiet. kube-rs: scheduler_should_add_debounce_to_a_request.
func TestDebounce_WaitsForQuiet(t *testing.T) {
	s := newDebounced(2*time.Second, 0)
	s.Schedule(epoch, request{Key: "a"})
	wantCounts(t, s, 0, 1, 0)
	wantPop(t, s, after(1.999))
	wantPop(t, s, after(2), "a")
	s.Done("a")
	wantPop(t, s, after(100))
}

// rule 6: each request within the debounce restarts it, they are merged into one run, and it has the message of the
// last. kube-rs: scheduler_should_dedup_message_within_debounce_period.
func TestDebounce_EachRequestStartsItAgain(t *testing.T) {
	s := newDebounced(3*time.Second, time.Minute)
	s.Schedule(epoch, request{Key: "a", Msg: "first"})
	s.Schedule(after(1), request{Key: "a", Msg: "second"})
	wantPop(t, s, after(3.999))
	it, ok := s.Pop(after(4))
	if !ok || it.Msg != "second" || !it.ReadyAt.Equal(after(4)) {
		t.Fatalf("item %+v, %v", it, ok)
	}
	s.Done("a")
	wantPop(t, s, after(100))
}

// rule 6: a steady trickle does not starve a key: it is run Max after the first request, and then again Max after the
// next. Without the bound (kube-rs), it would never be run.
func TestDebounce_TrickleCannotStarve(t *testing.T) {
	s := newDebounced(2*time.Second, 5*time.Second)
	var runs []float64
	for tenth := range 200 {
		now := after(float64(tenth) / 10)
		s.Schedule(now, request{Key: "a"})
		for _, key := range popAll(s, now) {
			runs = append(runs, now.Sub(epoch).Seconds())
			s.Done(key)
		}
	}
	// A request that comes together with a run belongs to it, so the next debounce begins a tenth later.
	want := []float64{5, 10.1, 15.2}
	if len(runs) != len(want) {
		t.Fatalf("runs at %v, want %v", runs, want)
	}
	for i := range want {
		if runs[i] != want[i] {
			t.Fatalf("runs at %v, want %v", runs, want)
		}
	}
}

// rule 6: Max is DefaultDebounceFactor times Quiet if it is not set.
func TestDebounce_HasABoundByDefault(t *testing.T) {
	s := newDebounced(time.Second, 0)
	for half := range 2*scheduler.DefaultDebounceFactor + 1 {
		s.Schedule(after(float64(half)/2), request{Key: "a"})
	}
	wantCounts(t, s, 1, 0, 0)
	wantPop(t, s, after(scheduler.DefaultDebounceFactor), "a")
}

// rules 3 and 6: an explicit time is neither delayed nor postponed by a debounce, and takes the collected requests with
// it. In kube-rs, a trigger postpones a requeue that is about to run.
func TestDebounce_DoesNotTouchTimesThatWereAskedFor(t *testing.T) {
	type ask struct{ at, due float64 } // seconds; due is 0 for a request without a time
	for name, tc := range map[string]struct {
		asks []ask
		want float64
	}{
		"requeue alone":                           {[]ask{{0, 5}}, 5},
		"trigger just before the requeue":         {[]ask{{0, 5}, {4.5, 0}}, 5},
		"trickle up to the requeue":               {[]ask{{0, 5}, {3.5, 0}, {4.5, 0}, {4.9, 0}}, 5},
		"trigger long before the requeue":         {[]ask{{0, 5}, {1, 0}}, 3},
		"requeue during the debounce":             {[]ask{{4, 0}, {4.5, 5}}, 5},
		"trickle after a requeue in the debounce": {[]ask{{4, 0}, {4.5, 5}, {4.9, 0}}, 5},
		"requeue that is due after the debounce":  {[]ask{{0, 0}, {1, 5}}, 2},
		"trickle over such a requeue":             {[]ask{{0, 0}, {1, 5}, {1.9, 0}, {3.8, 0}, {4.9, 0}}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDebounced(2*time.Second, 10*time.Second)
			for _, a := range tc.asks {
				req := request{Key: "a"}
				if a.due > 0 {
					req.At = after(a.due)
				}
				s.Schedule(after(a.at), req)
			}
			wantPop(t, s, after(tc.want-0.001))
			wantPop(t, s, after(tc.want), "a")
			s.Done("a")
			wantPop(t, s, after(100))
		})
	}
}

// A request whose explicit time is now is run now, and takes the collected requests with it.
func TestDebounce_RequestForNowDoesNotWait(t *testing.T) {
	s := newDebounced(2*time.Second, 0)
	s.Schedule(epoch, request{Key: "a"})
	s.Schedule(after(1), request{Key: "a", At: after(1)})
	wantPop(t, s, after(1), "a")
	s.Done("a")
	wantPop(t, s, after(100))
}

// rule 2: requests that come while a key runs are collected too, and lead to one run after it.
func TestDebounce_GathersWhileTheKeyRuns(t *testing.T) {
	s := newDebounced(2*time.Second, 0)
	s.Schedule(epoch, request{Key: "a", At: epoch})
	wantPop(t, s, epoch, "a")
	s.Schedule(epoch, request{Key: "a"})
	s.Schedule(after(1), request{Key: "a"})
	s.Done("a")
	wantPop(t, s, after(2.999))
	wantPop(t, s, after(3), "a")
}

// rule 7: collecting allocates nothing.
func TestDebounce_AllocatesNothing(t *testing.T) {
	s := newDebounced(2*time.Second, 0)
	now := epoch
	s.Schedule(now, request{Key: "other"})
	if got := testing.AllocsPerRun(1000, func() {
		s.Schedule(now, request{Key: "other"})
		now = now.Add(time.Millisecond)
	}); got != 0 {
		t.Fatalf("%v allocations a request", got)
	}
}

func TestDebounce_ValidateNamesTheField(t *testing.T) {
	for want, d := range map[string]scheduler.Debounce{
		"quiet -1":   {Quiet: -1},
		"quiet 8760": {Quiet: 8760 * time.Hour},
		"max 1s":     {Quiet: 2 * time.Second, Max: time.Second},
		"max -1":     {Max: -1},
	} {
		if err := d.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v does not name %q", d, err, want)
		}
	}
	for _, d := range []scheduler.Debounce{{}, {Quiet: time.Second}, {Quiet: time.Second, Max: time.Second}, {Quiet: scheduler.MaxDelay}} {
		if err := d.Validate(); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
}
