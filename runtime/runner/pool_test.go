// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

func newPool(t *testing.T, limit int) *runner.Pool {
	t.Helper()
	p, err := runner.NewPool(limit)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// keys returns n keys.
func keys(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

// hangJob returns a job that runs until it receives something, or its context ends.
func hangJob(release <-chan struct{}) job {
	return func(ctx context.Context, _ item) outcome {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return outcome{}
	}
}

// wantRunning fails the test if the fixtures do not run these numbers of jobs.
func wantRunning(t *testing.T, fixtures []*fixture, want ...int) {
	t.Helper()
	synctest.Wait()
	var got []int
	for _, f := range fixtures {
		got = append(got, f.Stats().Running)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("running (-want +got):\n%s", diff)
	}
}

// A client that floods and hangs on all its slots does not delay another: each has its own slot, at once.
func TestPool_HangingClientDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 6)
		cfg := config{Pool: pool, Concurrency: 100}
		release := make(chan struct{})
		hang := newReady(t, cfg, hangJob(release))
		b, c := newReady(t, cfg, sleepJob(time.Second)), newReady(t, cfg, sleepJob(time.Second))
		all := []*fixture{hang, b, c}
		synctest.Wait()
		hang.send(keys(1000)...)
		wantRunning(t, all, 4, 0, 0) // its own one, and the three that are not reserved
		b.send(keys(10)...)
		wantRunning(t, all, 4, 1, 0)
		c.send(keys(10)...)
		wantRunning(t, all, 4, 1, 1)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if b.Stats().Started != 10 || c.Stats().Started != 10 || b.Stats().Running+c.Stats().Running != 0 {
			t.Fatalf("after 10 s: %+v and %+v", b.Stats(), c.Stats())
		}
		if got, want := pool.Stats(), (runner.PoolStats{Limit: 6, Clients: 3, Running: 4, Waiting: 1}); got != want {
			t.Fatalf("pool %+v, want %+v", got, want)
		}
		close(release)
		synctest.Wait()
	})
}

// Remaining slots go to the client with the fewest running jobs, so that two that flood share equally, in any order.
func TestPool_SharesEqually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// One slot is reserved for the third: the number of the other slots is even, so that none remains.
		cfg := config{Pool: newPool(t, 9), Concurrency: 100}
		var all []*fixture
		for range 3 {
			all = append(all, newReady(t, cfg, sleepJob(time.Second)))
		}
		synctest.Wait()
		all[0].send(keys(1000)...)
		wantRunning(t, all, 7, 0, 0)
		all[1].send(keys(1000)...)
		wantRunning(t, all, 7, 1, 0)
		time.Sleep(time.Second)
		wantRunning(t, all, 4, 4, 0) // all have ended: the second has had the fewest until both have the same number
		all[2].send("one")
		time.Sleep(100 * time.Second)
		synctest.Wait()
		a, b := int(all[0].Stats().Started), int(all[1].Stats().Started)
		if a != 411 || b != 405 { // seven and one, and then four each second
			t.Fatalf("%d and %d jobs started in 100 s", a, b)
		}
		if all[2].Stats().Started != 1 {
			t.Fatalf("third: %+v", all[2].Stats())
		}
	})
}

// A released slot goes to the client with the fewest running jobs and, among equals, to the one that has waited
// longest.
func TestPool_FreedSlotGoesToWhoHasFewestThenFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config{Pool: newPool(t, 5), Concurrency: 100}
		free := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{}), "c": make(chan struct{})}
		hold := func(name string) *fixture {
			return newReady(t, cfg, hangJob(free[name]))
		}
		all := []*fixture{hold("a"), hold("b"), hold("c")}
		synctest.Wait()
		all[0].send(keys(9)...)
		synctest.Wait()
		all[2].send(keys(9)...)
		synctest.Wait()
		all[1].send(keys(9)...)
		wantRunning(t, all, 3, 1, 1)
		for _, step := range []struct {
			free string
			want []int
			why  string
		}{
			{"a", []int{2, 1, 2}, "c has as few as b, and has waited longer"},
			{"a", []int{2, 1, 2}, "a has as few as b now, and has waited longer"},
			{"a", []int{1, 2, 2}, "b has waited longer than a"},
			{"c", []int{1, 2, 2}, "c has waited longer than a"},
			{"b", []int{2, 1, 2}, "a has waited longer than b"},
			{"c", []int{2, 2, 1}, "b has waited longer than c"},
		} {
			free[step.free] <- struct{}{}
			t.Logf("%s frees one: %s", step.free, step.why)
			wantRunning(t, all, step.want...)
		}
		for _, c := range free {
			close(c)
		}
		synctest.Wait()
	})
}

// Membership changes at run time: a new client gets the next released slot, a leaving client returns its slots, and one
// too many is refused.
func TestPool_ClientsJoinAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 2)
		cfg := config{Pool: pool, Concurrency: 100}
		a := newReady(t, cfg, sleepJob(10*time.Second))
		a.send(keys(9)...)
		time.Sleep(time.Second)
		wantRunning(t, []*fixture{a}, 2)
		b := newReady(t, cfg, sleepJob(10*time.Second))
		b.send("x", "y")
		wantRunning(t, []*fixture{a, b}, 2, 0) // the limit is respected
		time.Sleep(9 * time.Second)
		wantRunning(t, []*fixture{a, b}, 1, 1)

		third, err := runner.New(cfg, sleepJob(0))
		if err != nil {
			t.Fatal(err)
		}
		if err := third.Run(t.Context(), runner.Input[string, string]{}); !errors.Is(err, runner.ErrPoolFull) || !strings.Contains(err.Error(), "limit 2") {
			t.Fatalf("error %v", err)
		}
		if err := pool.Resize(1); !errors.Is(err, runner.ErrPoolFull) {
			t.Fatalf("error %v", err)
		}

		a.stop(errTestStop)
		time.Sleep(10 * time.Second)
		wantRunning(t, []*fixture{a, b}, 0, 1)
		if got, want := pool.Stats(), (runner.PoolStats{Limit: 2, Clients: 1, Running: 1}); got != want {
			t.Fatalf("pool %+v, want %+v", got, want)
		}
		b.send("z")
		wantRunning(t, []*fixture{b}, 2)
	})
}

// Resize grants new slots at once; a reduction lets running jobs end and starts nothing until enough have.
func TestPool_Resize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 1)
		f := newReady(t, config{Pool: pool, Concurrency: 100}, sleepJob(10*time.Second))
		f.send(keys(20)...)
		wantRunning(t, []*fixture{f}, 1)
		if err := pool.Resize(5); err != nil {
			t.Fatal(err)
		}
		wantRunning(t, []*fixture{f}, 5)
		if err := pool.Resize(2); err != nil {
			t.Fatal(err)
		}
		wantRunning(t, []*fixture{f}, 5)
		time.Sleep(10 * time.Second)
		wantRunning(t, []*fixture{f}, 2)
		for _, limit := range []int{0, -1, runner.MaxConcurrency + 1} {
			if _, err := runner.NewPool(limit); err == nil || pool.Resize(limit) == nil {
				t.Errorf("limit %d is taken", limit)
			}
		}
	})
}

// A client that waits and then does not need a slot, because it is paused or stops, does not keep the slot from others.
func TestPool_WhoNeedsNoSlotKeepsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 4)
		cfg := config{Pool: pool, Concurrency: 100}
		release := make(chan struct{})
		busy := newReady(t, cfg, hangJob(release))
		waits, stops := newReady(t, cfg, sleepJob(time.Hour)), newReady(t, cfg, sleepJob(time.Minute))
		synctest.Wait()
		for _, f := range []*fixture{busy, waits, stops} {
			f.send(keys(9)...)
			synctest.Wait()
		}
		all := []*fixture{busy, waits, stops}
		wantRunning(t, all, 2, 1, 1)
		waits.Pause()
		stops.stop(errTestStop)
		for range 5 {
			release <- struct{}{}
			wantRunning(t, all, 2, 1, 1) // offered to the paused one in its turn, returned, used by the only one that can
		}
		waits.Resume()
		time.Sleep(time.Minute)
		wantRunning(t, all, 2, 2, 0)
		close(release)
		synctest.Wait()
	})
}

// The same if it has received some of the slots that it wanted and is paused by the job that uses them: the others get
// the rest.
func TestPool_PausedClientKeepsNoSharedSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(t, 4)
		cfg := config{Pool: pool, Concurrency: 100}
		release := make(chan struct{})
		busy := newReady(t, cfg, hangJob(release))
		synctest.Wait()
		busy.send(keys(9)...)
		synctest.Wait()
		var waits *fixture
		started := 0
		cfg.OnStart = func(time.Duration, scheduler.Priority) {
			if started++; started == 2 {
				waits.Pause()
			}
		}
		waits = newFixture(t, cfg, sleepJob(time.Hour))
		close(waits.ready)
		waits.send(keys(9)...)
		all := []*fixture{busy, waits}
		wantRunning(t, all, 4, 0)
		release <- struct{}{}
		wantRunning(t, all, 3, 1)
		for range 5 {
			release <- struct{}{}
			synctest.Wait()
		}
		// The second start paused it; it retains none of the further slots that it wanted.
		wantRunning(t, all, 2, 2)
		if got, want := pool.Stats(), (runner.PoolStats{Limit: 4, Clients: 2, Running: 4, Waiting: 1}); got != want {
			t.Fatalf("pool %+v, want %+v", got, want)
		}
		waits.Resume()
		wantRunning(t, all, 2, 2)
		close(release)
		synctest.Wait()
	})
}

// rules 1, 2, 5 and those of the pool under real concurrency: runners join, flood and leave, and share a pool whose
// limit is never exceeded; every request is run.
func TestPool_Hammer(t *testing.T) {
	const limit, clients, rounds = 5, 4, 5
	before := runtime.NumGoroutine()
	pool := newPool(t, limit)
	var running atomic.Int32
	job := func(context.Context, scheduler.Item[int, string]) scheduler.Next[string] {
		if n := running.Add(1); n > limit {
			t.Errorf("%d jobs at once", n)
		}
		runtime.Gosched()
		running.Add(-1)
		return scheduler.Next[string]{}
	}
	var wg sync.WaitGroup
	for seed := range uint64(clients) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 0))
			for range rounds {
				if err := hammerRound(rng, pool, job); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, want := pool.Stats(), (runner.PoolStats{Limit: limit}); got != want {
		t.Fatalf("pool %+v, want %+v", got, want)
	}
	waitForGoroutines(t, before)
}

// hammerRound runs one runner to the end of its input and checks that each key was run after it was requested.
func hammerRound(rng *rand.Rand, pool *runner.Pool, job runner.Job[int, string]) error {
	r, err := runner.New(runner.Config[string]{Pool: pool, Concurrency: 1 + rng.IntN(6)}, job)
	if err != nil {
		return err
	}
	requests := make(chan []scheduler.Request[int, string])
	ended := make(chan error, 1)
	go func() { ended <- r.Run(context.Background(), runner.Input[int, string]{Requests: requests}) }()
	const asked = 200
	for i := range asked {
		requests <- []scheduler.Request[int, string]{{Key: i}}
		if rng.IntN(10) == 0 {
			r.Pause()
			r.Resume()
		}
	}
	close(requests)
	if err := <-ended; err != nil {
		return err
	}
	if n := r.Stats().Started; n != asked {
		return fmt.Errorf("%d jobs of %d", n, asked)
	}
	return nil
}
