// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// causes collects the reasons for which jobs were interrupted; the bubble's goroutines share it through a channel.
type causes chan string

// waitJob returns a job that runs for a time, ends early if its context is canceled, and records how it ended.
func (c causes) waitJob(d time.Duration) job {
	return func(ctx context.Context, it item) outcome {
		select {
		case <-time.After(d):
			c <- it.Key + ": done"
		case <-ctx.Done():
			c <- it.Key + ": " + context.Cause(ctx).Error()
		}
		return outcome{Requeue: true}
	}
}

func (c causes) sorted() []string {
	var all []string
	for len(c) > 0 {
		all = append(all, <-c)
	}
	return sorted(all)
}

// rule 9: after a stop nothing new starts, and running jobs finish undisturbed.
func TestRunner_StopLetsRunningJobsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(causes, 10)
		f := newReady(t, config{Concurrency: 2}, c.waitJob(10*time.Second))
		f.send("a", "b", "never")
		synctest.Wait()
		f.stop(errTestStop)
		time.Sleep(9 * time.Second)
		if f.hasEnded() {
			t.Fatal("Run returned while jobs were running")
		}
		time.Sleep(time.Second)
		if !f.hasEnded() || f.err != nil {
			t.Fatalf("ended %v, error %v", f.hasEnded(), f.err)
		}
		if diff := cmp.Diff([]string{"a: done", "b: done"}, c.sorted()); diff != "" {
			t.Fatalf("jobs (-want +got):\n%s", diff)
		}
		f.wantStats(runner.Stats{Ready: 1, Started: 2, Received: 3, Requeued: 2})
	})
}

// rule 9: jobs that do not finish within the limit are interrupted, with the reason as the cause, and Run returns it.
func TestRunner_DrainTimeoutInterrupts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(causes, 10)
		f := newReady(t, config{DrainTimeout: 5 * time.Second}, c.waitJob(time.Hour))
		f.send("a", "b")
		time.Sleep(time.Minute)
		f.stop(errTestStop)
		time.Sleep(5*time.Second - 1)
		if f.hasEnded() {
			t.Fatal("Run returned before the limit")
		}
		time.Sleep(time.Nanosecond)
		if !f.hasEnded() || !errors.Is(f.err, runner.ErrDrainTimeout) {
			t.Fatalf("ended %v, error %v", f.hasEnded(), f.err)
		}
		if want := "runner: 2 running jobs interrupted: drain timeout exceeded"; f.err.Error() != want {
			t.Fatalf("error %q, want %q", f.err, want)
		}
		if diff := cmp.Diff([]string{"a: drain timeout exceeded", "b: drain timeout exceeded"}, c.sorted()); diff != "" {
			t.Fatalf("jobs (-want +got):\n%s", diff)
		}
	})
}

// rule 9: a second stop forces, and a third is harmless.
func TestRunner_SecondStopForcesThirdIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(causes, 10)
		f := newReady(t, config{}, func(ctx context.Context, it item) outcome {
			<-ctx.Done()
			time.Sleep(time.Second) // cleaning up
			c <- it.Key + ": " + context.Cause(ctx).Error()
			return outcome{}
		})
		f.send("a")
		synctest.Wait()
		f.stop(errTestStop)
		time.Sleep(time.Second)
		begin := time.Now()
		f.force()
		synctest.Wait()
		f.force()
		f.stop(errTestStop)
		<-f.ended
		if took := time.Since(begin); took != time.Second {
			t.Fatalf("Run returned %v after the forced stop; the job took 1s to end", took)
		}
		if !errors.Is(f.err, runner.ErrForced) || errors.Is(f.err, runner.ErrDrainTimeout) {
			t.Fatalf("error %v", f.err)
		}
		if diff := cmp.Diff([]string{"a: forced stop"}, c.sorted()); diff != "" {
			t.Fatalf("jobs (-want +got):\n%s", diff)
		}
	})
}

// rule 9: a forced stop does not require a graceful one before it, and is not an error if nothing was running.
func TestRunner_ForceAloneStops(t *testing.T) {
	for _, running := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			c := make(causes, 10)
			f := newReady(t, config{Concurrency: 1}, c.waitJob(time.Hour))
			if running > 0 {
				f.send("a", "never")
			}
			synctest.Wait()
			f.force()
			if !f.hasEnded() || errors.Is(f.err, runner.ErrForced) != (running > 0) {
				t.Fatalf("%d running: ended %v, error %v", running, f.hasEnded(), f.err)
			}
			if n := f.Stats().Started; n != uint64(running) {
				t.Fatalf("%d jobs started", n)
			}
		})
	}
}

// rule 9: a stop after the interruption by the drain timeout changes nothing.
func TestRunner_ForceAfterDrainTimeoutIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReady(t, config{DrainTimeout: time.Second}, sleepJob(time.Hour))
		f.send("a")
		synctest.Wait()
		f.stop(errTestStop)
		time.Sleep(time.Minute)
		f.force()
		time.Sleep(time.Hour)
		if !f.hasEnded() || !errors.Is(f.err, runner.ErrDrainTimeout) || errors.Is(f.err, runner.ErrForced) {
			t.Fatalf("ended %v, error %v", f.hasEnded(), f.err)
		}
	})
}

// rules 1 and 9: Run waits for a job that ignores its context, and logs its key every ten seconds.
func TestRunner_JobThatIgnoresItsContextIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		cfg := config{DrainTimeout: time.Second, Concurrency: 12, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		f := newReady(t, cfg, sleepJob(time.Minute))
		for i := range 12 {
			f.send(fmt.Sprint("key", i))
		}
		synctest.Wait()
		f.stop(errTestStop)
		time.Sleep(58 * time.Second)
		if f.hasEnded() {
			t.Fatal("Run returned while jobs were running")
		}
		time.Sleep(2 * time.Second)
		if !f.hasEnded() {
			t.Fatal("Run has not returned")
		}
		if n := strings.Count(log.String(), "still waiting"); n != 5 {
			t.Errorf("%d reports within 59 s", n)
		}
		if !strings.Contains(log.String(), "key0") || !strings.Contains(log.String(), "key9 ...]") {
			t.Errorf("the report does not name the first ten jobs:\n%s", &log)
		}
	})
}

// rule 8: a stop while the loop is handing out does not deadlock, loses no job, and starts nothing after it.
// controller-runtime: TestPriorityQueueDoesNotDeadlockOnShutdownWhileHandingOutItems (50 rounds).
func TestRunner_StopWhileHandingOut(t *testing.T) {
	for round := range 50 {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan struct{}, 10_000)
			var f *fixture
			f = newReady(t, config{Concurrency: 1 + round%5}, func(_ context.Context, it item) outcome {
				if it.Key == fmt.Sprint(round*7) {
					f.stop(errTestStop) // from within, in the middle of the work
				}
				ended <- struct{}{}
				return outcome{Requeue: true}
			})
			var batch []request
			for i := range 500 {
				batch = append(batch, request{Key: fmt.Sprint(i)})
			}
			f.sendBatch(batch...)
			if !f.hasEnded() || f.err != nil {
				t.Fatalf("ended %v, error %v", f.hasEnded(), f.err)
			}
			if n := f.Stats().Started; n != uint64(len(ended)) || f.Stats().Running != 0 {
				t.Fatalf("%d jobs started, %d ended, %d running", n, len(ended), f.Stats().Running)
			}
		})
	}
}

// rule 9: after a stop no job starts, even if requests and free slots came with it. The Merge function runs in the
// loop, so the stop comes exactly between the requests and the start of their jobs.
func TestRunner_NothingStartsAfterTheStop(t *testing.T) {
	for _, forced := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var f *fixture
			cfg := config{Scheduler: scheduler.Config[string]{Merge: func(pending, _ string) string {
				if forced {
					f.force()
				} else {
					f.stop(errTestStop)
				}
				return pending
			}}}
			f = newReady(t, cfg, sleepJob(0))
			synctest.Wait()
			f.send("a", "b", "a")
			if !f.hasEnded() || f.err != nil {
				t.Fatalf("forced %v: ended %v, error %v", forced, f.hasEnded(), f.err)
			}
			f.wantStats(runner.Stats{Ready: 2, Received: 3})
		})
	}
}

// rule 9: during a stop no request is received, and the end of the input does not start ready requests.
func TestRunner_NothingIsTakenInDuringAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReady(t, config{Concurrency: 2}, sleepJob(10*time.Second))
		f.send("a", "b", "never")
		time.Sleep(time.Second)
		f.stop(errTestStop)
		synctest.Wait()
		select {
		case f.requests <- []request{{Key: "late"}}:
			t.Fatal("a request was taken after the stop")
		case <-time.After(time.Second):
		}
		close(f.requests)
		<-f.ended
		f.wantStats(runner.Stats{Ready: 1, Started: 2, Received: 3})
	})
}

// The context of a job has the values of Run's, and is not canceled with it.
func TestRunner_JobContextKeepsValues(t *testing.T) {
	type ctxKey struct{}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, "value"))
		var value any
		var err error
		r, newErr := runner.New(config{}, func(ctx context.Context, _ item) outcome {
			stop()
			synctest.Wait()
			value, err = ctx.Value(ctxKey{}), ctx.Err()
			return outcome{}
		})
		if newErr != nil {
			t.Fatal(newErr)
		}
		requests := make(chan []request, 1)
		requests <- []request{{Key: "a"}}
		if runErr := r.Run(ctx, runner.Input[string, string]{Requests: requests}); runErr != nil {
			t.Fatal(runErr)
		}
		if value != "value" || err != nil {
			t.Fatalf("value %v, context error %v", value, err)
		}
	})
}

// A job that panics or calls Goexit ends the process, and the message contains the key.
func TestRunner_JobThatDoesNotReturnEndsTheProcess(t *testing.T) {
	if key := os.Getenv("RUNNER_TEST_CRASH"); key != "" {
		f := newReady(t, config{}, func(_ context.Context, it item) outcome {
			if it.Key == "default/goexit" {
				runtime.Goexit()
			}
			panic("boom")
		})
		f.send(key)
		<-f.ended
		return
	}
	for key, want := range map[string]string{
		"default/panic":  "BUG: runner: job[default/panic]: panic: boom",
		"default/goexit": "BUG: runner: job[default/goexit]: called runtime.Goexit",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "RUNNER_TEST_CRASH="+key)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || !strings.Contains(string(out), want) {
			t.Errorf("%s: error %v, output:\n%s", key, err, out)
		}
		if key == "default/panic" && !strings.Contains(string(out), "TestRunner_JobThatDoesNotReturnEndsTheProcess.func1") {
			t.Errorf("the stack does not show the job:\n%s", out)
		}
	}
}
