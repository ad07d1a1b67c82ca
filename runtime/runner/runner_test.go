// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// sleepJob returns a job that takes some time and then waits for the next request.
func sleepJob(d time.Duration) job {
	return func(context.Context, item) outcome {
		time.Sleep(d)
		return outcome{}
	}
}

// rules 1 and 2: a request for a running key leads to exactly one run after it. kube-rs: runner_should_never_run_two_instances_at_once.
func TestRunner_NeverRunsOneKeyTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReady(t, config{}, sleepJob(time.Second))
		f.send("a")
		f.wantStats(runner.Stats{Running: 1, Started: 1, Received: 1})
		f.send("a", "a")
		f.send("a")
		f.wantStats(runner.Stats{Ready: 1, Running: 1, Started: 1, Received: 4})
		time.Sleep(time.Second)
		f.wantStats(runner.Stats{Running: 1, Started: 2, Received: 4})
		time.Sleep(time.Hour)
		f.wantStats(runner.Stats{Started: 2, Received: 4})
	})
}

// kube-rs: runner_should_wake_when_scheduling_messages.
// controller-runtime: TestItemIsReturnedAsSoonAsPossible.
func TestRunner_WakesForARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started []string
		f := newReady(t, config{}, func(_ context.Context, it item) outcome {
			started = append(started, it.Key+" "+time.Since(it.ReadyAt).String())
			return outcome{}
		})
		f.sendBatch(request{Key: "tomorrow", At: time.Now().Add(24 * time.Hour)})
		time.Sleep(time.Hour)
		f.send("now")
		f.sendBatch(request{Key: "soon", At: time.Now().Add(time.Second)})
		time.Sleep(time.Second)
		f.wantStats(runner.Stats{Waiting: 1, Started: 2, Received: 3})
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]string{"now 0s", "soon 0s", "tomorrow 0s"}, started); diff != "" {
			t.Fatalf("started (-want +got):\n%s", diff)
		}
	})
}

// rule 10: no job starts before readiness; requests are received and deduplicated meanwhile, and their timers continue.
// kube-rs: runner_should_wait_for_readiness, runner_should_dedupe_while_waiting_for_readiness.
func TestRunner_WaitsForReadinessAndDedupesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		f := newFixture(t, config{Concurrency: 1}, func(_ context.Context, it item) outcome {
			order = append(order, it.Key)
			return outcome{}
		})
		f.send("a")
		f.send("b", "a")
		f.sendBatch(request{Key: "timer", At: time.Now().Add(time.Minute)})
		time.Sleep(time.Hour)
		f.wantStats(runner.Stats{Ready: 3, Received: 4})
		close(f.ready)
		f.wantStats(runner.Stats{Started: 3, Received: 4})
		if diff := cmp.Diff([]string{"a", "b", "timer"}, order); diff != "" {
			t.Fatalf("order (-want +got):\n%s", diff)
		}
	})
}

// If readiness is never reached, the context is canceled instead. Then no job runs and no error is invented. kube-rs:
// runner_should_report_readiness_errors (there, the gate itself carries the error).
func TestRunner_StopBeforeReadinessRunsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{}, sleepJob(0))
		f.send("a", "b")
		f.stop(errTestStop)
		if !f.hasEnded() || f.err != nil {
			t.Fatalf("ended %v, error %v", f.hasEnded(), f.err)
		}
		f.wantStats(runner.Stats{Ready: 2, Received: 2})
	})
}

// rule 5: the limit is never exceeded, and a released slot is used at once; when the input ends, pending requests are
// still run. kube-rs: runner_should_respect_max_concurrent_executions; fhm_should_forward_all_values_and_shut_down.
func TestRunner_KeepsTheLimitAndUsesAFreedSlotAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReady(t, config{Concurrency: 2}, func(_ context.Context, it item) outcome {
			d, _ := time.ParseDuration(it.Key)
			time.Sleep(d)
			return outcome{}
		})
		f.send("10s", "3s", "20s")
		f.wantStats(runner.Stats{Ready: 1, Running: 2, Started: 2, Received: 3})
		time.Sleep(3 * time.Second)
		f.wantStats(runner.Stats{Running: 2, Started: 3, Received: 3})
		f.send("1s")
		close(f.requests)
		time.Sleep(19 * time.Second)
		f.wantStats(runner.Stats{Running: 1, Started: 4, Received: 4})
		if f.hasEnded() {
			t.Fatal("Run returned while a job was running")
		}
		time.Sleep(time.Second)
		if !f.hasEnded() || f.err != nil {
			t.Fatalf("ended %v, error %v", f.hasEnded(), f.err)
		}
	})
}

// rule 5: the zero Config runs DefaultConcurrency jobs at once, not any number.
func TestRunner_DefaultIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReady(t, config{}, sleepJob(time.Second))
		f.send(strings.Fields("a b c d e f g h i j")...)
		f.wantStats(runner.Stats{Ready: 6, Running: runner.DefaultConcurrency, Started: 4, Received: 10})
	})
}

// The end of the input discards requeues and timers: otherwise, Run would never end.
func TestRunner_EndOfInputDropsTimersAndRequeues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReady(t, config{}, func(context.Context, item) outcome {
			time.Sleep(time.Second)
			return outcome{Requeue: true}
		})
		f.sendBatch(request{Key: "a"}, request{Key: "timer", At: time.Now().Add(time.Hour)})
		close(f.requests)
		time.Sleep(time.Second)
		if !f.hasEnded() {
			t.Fatal("Run has not returned")
		}
		f.wantStats(runner.Stats{Waiting: 1, Started: 1, Received: 2, Requeued: 1})
	})
}

// rule 2: after the end of the input, requests that came while their key ran are run. client-go:
// TestQueueDrainageUsingShutDownWithDrainWithDirtyItem.
func TestRunner_EndOfInputRunsWhatIsBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReady(t, config{}, sleepJob(time.Second))
		f.send("a")
		synctest.Wait() // it is running: otherwise, the loop may handle both in one turn, which is one run
		f.send("a")
		close(f.requests)
		<-f.ended
		f.wantStats(runner.Stats{Started: 2, Received: 2})
	})
}

// rule 10: the end of the input before readiness loses nothing.
func TestRunner_EndOfInputBeforeReadinessLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, config{}, sleepJob(time.Second))
		f.send("a", "b")
		close(f.requests)
		if f.hasEnded() {
			t.Fatal("Run returned before it was ready")
		}
		close(f.ready)
		<-f.ended
		f.wantStats(runner.Stats{Started: 2, Received: 2})
	})
}

// rule 25: requeue time counts from the end of the run, over 24 hours: a job of 10 s that requeues after 50 s runs once a minute.
func TestRunner_RequeueCountsFromTheEndOfTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var starts []time.Duration
		f := newReady(t, config{}, func(context.Context, item) outcome {
			starts = append(starts, time.Since(begin))
			time.Sleep(10 * time.Second)
			return outcome{Requeue: true, After: 50 * time.Second}
		})
		f.send("a")
		time.Sleep(24*time.Hour - time.Second)
		f.wantStats(runner.Stats{Waiting: 1, Started: 24 * 60, Received: 1, Requeued: 24 * 60})
		for i, at := range starts {
			if at != time.Duration(i)*time.Minute {
				t.Fatalf("run %d started at %v", i, at)
			}
		}
	})
}

// rule 25: the end of the run counts even if the loop handles it late. The Merge function runs in the loop and keeps it
// busy here.
func TestRunner_RequeueCountsFromTheEndEvenIfTheLoopIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		cfg := config{Scheduler: scheduler.Config[string]{Merge: func(pending, _ string) string {
			time.Sleep(30 * time.Second)
			return pending
		}}}
		var starts []time.Duration
		f := newReady(t, cfg, func(context.Context, item) outcome {
			starts = append(starts, time.Since(begin))
			time.Sleep(time.Second)
			return outcome{Requeue: true, After: time.Minute}
		})
		f.send("a")
		synctest.Wait()
		later := request{Key: "b", At: begin.Add(time.Hour)}
		f.sendBatch(later, later)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]time.Duration{0, 61 * time.Second}, starts); diff != "" {
			t.Fatalf("starts (-want +got):\n%s", diff)
		}
	})
}

// rule 3: a trigger absorbs the pending requeue timer, and the next timer counts from its run.
func TestRunner_TriggerAbsorbsRequeueTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReady(t, config{}, func(context.Context, item) outcome {
			return outcome{Requeue: true, After: time.Minute}
		})
		f.send("a")
		time.Sleep(40 * time.Second)
		f.send("a")
		f.wantStats(runner.Stats{Waiting: 1, Started: 2, Received: 2, Requeued: 2})
		time.Sleep(59 * time.Second)
		f.wantStats(runner.Stats{Waiting: 1, Started: 2, Received: 2, Requeued: 2})
		time.Sleep(time.Second)
		f.wantStats(runner.Stats{Waiting: 1, Started: 3, Received: 2, Requeued: 3})
	})
}

// rule 2: a request that came during the run absorbs the requeue of that run: one run, not two.
func TestRunner_RequestDuringRunAbsorbsItsRequeue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var msgs []string
		f := newReady(t, config{}, func(_ context.Context, it item) outcome {
			msgs = append(msgs, it.Msg)
			time.Sleep(time.Second)
			return outcome{Requeue: it.Msg == "first", Msg: "requeue"}
		})
		f.sendBatch(request{Key: "a", Msg: "first"})
		f.sendBatch(request{Key: "a", Msg: "changed"})
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]string{"first", "changed"}, msgs); diff != "" {
			t.Fatalf("runs (-want +got):\n%s", diff)
		}
	})
}

// rule 4: the requeue carries its own message and priority, and Low waits for Normal.
func TestRunner_RequeueCarriesMessageAndPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs []string
		f := newReady(t, config{Concurrency: 1}, func(_ context.Context, it item) outcome {
			runs = append(runs, fmt.Sprint(it.Key, " ", it.Msg, " ", it.Priority))
			if it.Key == "slow" {
				time.Sleep(time.Minute)
			}
			return outcome{Requeue: it.Msg == "listed", After: time.Second, Msg: "again", Priority: it.Priority}
		})
		f.sendBatch(request{Key: "a", Msg: "listed", Priority: scheduler.Low}, request{Key: "b", Msg: "listed"}, request{Key: "slow"})
		time.Sleep(time.Hour)
		synctest.Wait()
		// b ran first; a's first run came after slow's, so its requeue is the last.
		want := []string{"b listed normal", "slow  normal", "b again normal", "a listed low", "a again low"}
		if diff := cmp.Diff(want, runs); diff != "" {
			t.Fatalf("runs (-want +got):\n%s", diff)
		}
	})
}

// The configured Merge is passed to the scheduler.
func TestRunner_MergesMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got string
		cfg := config{Scheduler: scheduler.Config[string]{Merge: func(pending, next string) string { return pending + "+" + next }}}
		f := newFixture(t, cfg, func(_ context.Context, it item) outcome {
			got = it.Msg
			return outcome{}
		})
		f.sendBatch(request{Key: "a", Msg: "1"}, request{Key: "a", Msg: "2"})
		f.sendBatch(request{Key: "a", Msg: "3"})
		close(f.ready)
		synctest.Wait()
		if got != "1+2+3" {
			t.Fatalf("message %q", got)
		}
	})
}

// rule 8: 5,000 keys that requeue at zero delay three times do not deadlock; all 15,000 runs happen, and the stop is
// graceful. kube-rs: applier_must_not_deadlock_if_reschedule_buffer_fills.
func TestRunner_ZeroRequeueOfManyKeysDoesNotDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, rounds = 5000, 3
		runs := make(chan string, keys*rounds)
		f := newFixture(t, config{Concurrency: 10}, func(_ context.Context, it item) outcome {
			runs <- it.Key
			return outcome{Requeue: len(it.Msg) < rounds-1, Msg: it.Msg + "x"}
		})
		for i := range keys {
			f.send(fmt.Sprint(i))
		}
		close(f.ready)
		f.wantStats(runner.Stats{Started: keys * rounds, Received: keys, Requeued: keys * (rounds - 1)})
		f.stop(errTestStop)
		if !f.hasEnded() || f.err != nil {
			t.Fatalf("ended %v, error %v", f.hasEnded(), f.err)
		}
		close(runs)
		count := map[string]int{}
		for key := range runs {
			count[key]++
		}
		for key, n := range count {
			if n != rounds {
				t.Fatalf("key %s ran %d times", key, n)
			}
		}
		if len(count) != keys {
			t.Fatalf("%d keys ran", len(count))
		}
	})
}

// The loop receives requests while every slot is taken: a slow job blocks no sender (rule 16).
func TestRunner_TakesRequestsWhileAllSlotsAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReady(t, config{Concurrency: 1}, sleepJob(time.Hour))
		f.send("slow")
		begin := time.Now()
		for i := range 1000 {
			f.sendBatch(request{Key: fmt.Sprint(i), At: time.Now().Add(time.Duration(i) * time.Second)})
		}
		if took := time.Since(begin); took > 0 {
			t.Fatalf("sending took %v", took)
		}
		time.Sleep(500 * time.Second)
		f.wantStats(runner.Stats{Ready: 501, Waiting: 499, Running: 1, Started: 1, Received: 1001})
	})
}

// controller-runtime: no goroutines if never started.
func TestRunner_NewStartsNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	if _, err := runner.New(config{Pool: newPool(t, 1)}, sleepJob(0)); err != nil {
		t.Fatal(err)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Fatalf("%d goroutines, %d before", n, before)
	}
}

// controller-runtime: a second Start fails.
func TestRunner_RunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReady(t, config{}, sleepJob(0))
		synctest.Wait()
		if err := f.Run(t.Context(), runner.Input[string, string]{}); err == nil {
			t.Fatal("the second Run gave no error")
		}
		f.send("a")
		f.wantStats(runner.Stats{Started: 1, Received: 1})
	})
}

// sorted returns a sorted copy, for tests that compare sets.
func sorted(keys []string) []string {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	return keys
}
