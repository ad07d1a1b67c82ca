// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// While a runner is paused, nothing starts, running jobs continue, requests are merged, and timers continue; afterwards
// each key is run once (rule 2).
func TestRunner_PauseStartsNothingAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReady(t, config{}, sleepJob(time.Minute))
		f.send("runs")
		f.wantStats(runner.Stats{Running: 1, Started: 1, Received: 1})
		f.Pause()
		f.send("a", "runs")
		f.send("a")
		f.sendBatch(request{Key: "timer", At: time.Now().Add(time.Second)})
		time.Sleep(time.Hour)
		f.wantStats(runner.Stats{Ready: 3, Started: 1, Received: 5})
		if !f.Paused() {
			t.Fatal("not paused")
		}
		f.Resume()
		f.wantStats(runner.Stats{Running: 3, Started: 4, Received: 5})
		time.Sleep(time.Hour)
		f.wantStats(runner.Stats{Started: 4, Received: 5})
	})
}

// Pause works before Run and on an idle runner, and Resume without Pause does nothing.
func TestRunner_PauseBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := runner.New(config{}, sleepJob(0))
		if err != nil {
			t.Fatal(err)
		}
		r.Resume()
		r.Pause()
		r.Pause()
		requests := make(chan []request)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx, runner.Input[string, string]{Requests: requests}) }()
		requests <- []request{{Key: "a"}}
		synctest.Wait()
		if s := r.Stats(); s.Started != 0 || s.Ready != 1 {
			t.Fatalf("stats %+v", s)
		}
		r.Resume()
		synctest.Wait()
		if s := r.Stats(); s.Started != 1 {
			t.Fatalf("stats %+v", s)
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
}

// rule 9: a stop does not wait for Resume; the end of the input does, because due requests must still be run.
func TestRunner_StopWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped, finishes := newReady(t, config{}, sleepJob(0)), newReady(t, config{}, sleepJob(0))
		for _, f := range []*fixture{stopped, finishes} {
			f.Pause()
			f.send("a")
		}
		stopped.stop(errTestStop)
		if !stopped.hasEnded() {
			t.Fatal("the stop waits for Resume")
		}
		close(finishes.requests)
		time.Sleep(time.Hour)
		if finishes.hasEnded() {
			t.Fatal("Run returned with a request that was not run")
		}
		finishes.Resume()
		if !finishes.hasEnded() {
			t.Fatal("Run has not returned")
		}
		finishes.wantStats(runner.Stats{Started: 1, Received: 1})
	})
}

// A job's Delay prevents its key, and only its key, from starting again, from the end of the run, whatever requests it:
// requests before and after the end, and its own requeue. Then there is one run (rules 2 and 3).
func TestRunner_DelayBeatsRequestsAndRequeue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var starts []string
		f := newReady(t, config{Concurrency: 1}, func(_ context.Context, it item) outcome {
			starts = append(starts, it.Key+" "+time.Since(begin).String())
			time.Sleep(time.Second)
			if it.Key == "hot" && len(starts) < 4 {
				return outcome{Requeue: true, After: time.Second, Delay: time.Minute}
			}
			return outcome{}
		})
		f.send("hot")
		f.send("hot")
		f.send("other")
		time.Sleep(30 * time.Second)
		f.send("hot")
		f.send("other")
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []string{"hot 0s", "other 1s", "other 30s", "hot 1m1s"}
		if diff := cmp.Diff(want, starts); diff != "" {
			t.Fatalf("starts (-want +got):\n%s", diff)
		}
		f.wantStats(runner.Stats{Started: 4, Received: 5, Requeued: 1})
	})
}

// rule 6: the configured debounce is passed to the scheduler; it does not delay a requeue, not even one without a
// delay.
func TestRunner_Debounces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var starts []time.Duration
		cfg := config{Scheduler: scheduler.Config[string]{Debounce: scheduler.Debounce{Quiet: time.Second, Max: 3 * time.Second}}}
		f := newReady(t, cfg, func(context.Context, item) outcome {
			starts = append(starts, time.Since(begin))
			return outcome{Requeue: len(starts) == 1}
		})
		for range 9 {
			f.send("a")
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		// The trickle continues to 4 s: bounded after 3 s, then quiet for a second after its end.
		if diff := cmp.Diff([]time.Duration{3 * time.Second, 3 * time.Second, 5 * time.Second}, starts); diff != "" {
			t.Fatalf("starts (-want +got):\n%s", diff)
		}
	})
}

// Lookup and Running return the state of the loop, even while every slot is taken.
func TestRunner_LookupAndRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		f := newReady(t, config{Concurrency: 2}, sleepJob(time.Hour))
		f.sendBatch(request{Key: "b", Msg: "one", Priority: scheduler.Low})
		time.Sleep(time.Minute)
		f.sendBatch(request{Key: "a", Msg: "two"})
		f.sendBatch(request{Key: "ready", Msg: "three"}, request{Key: "later", At: begin.Add(5 * time.Hour)})
		synctest.Wait()
		jobs, err := f.Running(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []runner.Running[string, string]{
			{Item: item{Key: "b", Msg: "one", Priority: scheduler.Low, ReadyAt: begin}, Since: begin},
			{Item: item{Key: "a", Msg: "two", ReadyAt: begin.Add(time.Minute)}, Since: begin.Add(time.Minute)},
		}
		if diff := cmp.Diff(want, jobs); diff != "" {
			t.Errorf("running (-want +got):\n%s", diff)
		}
		for key, want := range map[string]scheduler.View[string]{
			"a":     {Running: true, Since: begin.Add(time.Minute), Msg: "two"},
			"ready": {State: scheduler.Ready, At: begin.Add(time.Minute), Msg: "three"},
			"later": {State: scheduler.Waiting, At: begin.Add(5 * time.Hour)},
			"none":  {},
		} {
			got, err := f.Lookup(t.Context(), key)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s: error %v (-want +got):\n%s", key, err, diff)
			}
		}
		time.Sleep(9 * time.Second)
		if s := f.Stats(); s.OldestReady != 9*time.Second || s.OldestRunning != time.Minute+9*time.Second || s.Unfinished != time.Minute+18*time.Second {
			t.Errorf("stats %+v", s)
		}
	})
}

// Calls that need the loop fail before Run, after it, and when their context ends.
func TestRunner_LookupNeedsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fresh, err := runner.New(config{}, sleepJob(0))
		if err != nil {
			t.Fatal(err)
		}
		f := newReady(t, config{}, sleepJob(0))
		f.stop(errTestStop)
		<-f.ended
		for _, r := range []*runner.Runner[string, string]{fresh, f.Runner} {
			if _, err := r.Lookup(t.Context(), "a"); !errors.Is(err, runner.ErrNotRunning) {
				t.Errorf("Lookup: %v", err)
			}
			if _, err := r.Running(t.Context()); !errors.Is(err, runner.ErrNotRunning) {
				t.Errorf("Running: %v", err)
			}
		}

		// Merge runs in the loop and keeps it busy, so that the call cannot be answered in time.
		busy := newReady(t, config{Scheduler: scheduler.Config[string]{Merge: func(pending, _ string) string {
			time.Sleep(time.Minute)
			return pending
		}}}, sleepJob(0))
		later := request{Key: "later", At: time.Now().Add(time.Hour)}
		busy.sendBatch(later, later)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errTestStop)
		defer cancel()
		if _, err := busy.Lookup(ctx, "later"); !errors.Is(err, errTestStop) {
			t.Errorf("Lookup: %v", err)
		}
	})
}

// The hooks are called for each job: with the time that it waited for its turn, its priority, and its duration.
func TestRunner_TellsOfEachJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		cfg := config{
			Concurrency: 1,
			OnStart: func(queued time.Duration, p scheduler.Priority) {
				got = append(got, "start after "+queued.String()+", "+p.String())
			},
			OnEnd: func(took time.Duration) { got = append(got, "end after "+took.String()) },
		}
		f := newReady(t, cfg, sleepJob(3*time.Second))
		f.sendBatch(request{Key: "a"}, request{Key: "b", Priority: scheduler.Low}, request{Key: "c", At: time.Now().Add(time.Second)})
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []string{
			"start after 0s, normal", "end after 3s", "start after 2s, normal", "end after 3s", "start after 6s, low", "end after 3s",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("told (-want +got):\n%s", diff)
		}
	})
}

// A burst of a runner with high concurrency releases its goroutines, and the few remaining ones end with Run.
func TestRunner_IdleWorkersAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		f := newReady(t, config{Concurrency: 1000}, sleepJob(time.Second))
		f.send(keys(1000)...)
		f.wantStats(runner.Stats{Running: 1000, Started: 1000, Received: 1000})
		time.Sleep(time.Hour)
		f.wantStats(runner.Stats{Started: 1000, Received: 1000})
		if n := runtime.NumGoroutine() - before; n > 100 {
			t.Errorf("%d goroutines are left of 1000", n)
		}
		f.send(keys(1000)...)
		f.wantStats(runner.Stats{Running: 1000, Started: 2000, Received: 2000})
		f.stop(errTestStop)
		<-f.ended
	})
}

// Data of a completed job can be collected, although its worker is retained for the next job. client-go:
// TestGarbageCollection.
func TestRunner_DoneItemIsCollectable(t *testing.T) {
	type big [1 << 16]byte
	collected := make(chan struct{}, 2)
	newBig := func() *big {
		b := &big{}
		runtime.AddCleanup(b, func(struct{}) { collected <- struct{}{} }, struct{}{})
		return b
	}
	r, err := runner.New(runner.Config[*big]{}, func(context.Context, scheduler.Item[*big, *big]) scheduler.Next[*big] {
		return scheduler.Next[*big]{}
	})
	if err != nil {
		t.Fatal(err)
	}
	requests := make(chan []scheduler.Request[*big, *big])
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx, runner.Input[*big, *big]{Requests: requests}) }()
	requests <- []scheduler.Request[*big, *big]{{Key: newBig(), Msg: newBig()}}
	deadline := time.After(30 * time.Second)
	for left := 2; left > 0; {
		runtime.GC()
		select {
		case <-collected:
			left--
		case <-deadline:
			t.Fatalf("%d of key and message are kept", left)
		default:
			runtime.Gosched()
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// rule 7: a run of a known key allocates nothing: no goroutine, no closure.
func TestRunner_RunAllocatesNothing(t *testing.T) {
	ran := make(chan struct{})
	r, err := runner.New(config{}, func(context.Context, item) outcome { ran <- struct{}{}; return outcome{} })
	if err != nil {
		t.Fatal(err)
	}
	requests := make(chan []request)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx, runner.Input[string, string]{Requests: requests}) }()
	batch := []request{{Key: "a"}}
	if got := testing.AllocsPerRun(1000, func() { requests <- batch; <-ran }); got != 0 {
		t.Errorf("%v allocations a run", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
