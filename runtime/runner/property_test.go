// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

// tracker observes jobs and requests of one runner from outside and knows the conditions that must hold at any time.
type tracker struct {
	t        *testing.T
	limit    int
	debounce scheduler.Debounce

	mu      sync.Mutex
	running map[string]bool      // guarded by mu
	wanted  map[string]wish      // guarded by mu; keys that must still be started
	held    map[string]time.Time // guarded by mu; until when a key must not be started
	paused  bool                 // guarded by mu
	asked   int                  // guarded by mu; requests and requeues
	runs    int                  // guarded by mu
}

// wish is when a key must be started, if nothing prevents it.
type wish struct {
	at    time.Time
	first time.Time // of the debounced requests; zero if there are none
	limit time.Time // the latest that a debounce may postpone at to
}

func newTracker(t *testing.T, limit int, debounce scheduler.Debounce) *tracker {
	return &tracker{t: t, limit: limit, debounce: debounce, running: map[string]bool{}, wanted: map[string]wish{}, held: map[string]time.Time{}}
}

// want records a request or requeue that is about to be made: a run of the key must start after this. The zero time is
// a request without a time.
func (tr *tracker) want(key string, at time.Time) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.asked++
	now := time.Now()
	old, pending := tr.wanted[key]
	if pending && !old.at.After(now) {
		return // it is due: nothing postpones it
	}
	w := wish{at: at, limit: at}
	switch {
	case !at.IsZero() && pending:
		w = wish{at: earlier(old.at, at), first: old.first, limit: earlier(old.limit, at)}
	case at.IsZero():
		w.first, w.limit = now, now.Add(tr.debounce.Max)
		if pending {
			w.limit = earlier(w.limit, old.limit)
		}
		if pending && !old.first.IsZero() {
			w.first, w.limit = old.first, old.limit
		}
		w.at = earlier(now.Add(tr.debounce.Quiet), w.limit)
	}
	tr.wanted[key] = w
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (tr *tracker) start(key string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.running[key] {
		tr.t.Errorf("%s runs twice at once", key)
	}
	now := time.Now()
	w, ok := tr.wanted[key]
	switch {
	case !ok:
		tr.t.Errorf("%s started for nothing", key)
	case now.Before(w.at):
		tr.t.Errorf("%s started %v early", key, w.at.Sub(now))
	case now.Before(tr.held[key]):
		tr.t.Errorf("%s started %v before the end of its hold", key, tr.held[key].Sub(now))
	case tr.paused:
		tr.t.Errorf("%s started during a pause", key)
	}
	delete(tr.wanted, key)
	tr.running[key] = true
	tr.runs++
	if len(tr.running) > tr.limit {
		tr.t.Errorf("%d jobs run at once", len(tr.running))
	}
}

func (tr *tracker) end(key string, hold time.Duration) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	delete(tr.running, key)
	if hold > 0 {
		tr.held[key] = time.Now().Add(hold)
	}
}

func (tr *tracker) setPaused(paused bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.paused = paused
}

// startable returns a key that is due and free while the runner has a slot for it, and the number of running jobs.
func (tr *tracker) startable() (key string, running int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	now := time.Now()
	for k, w := range tr.wanted {
		if !w.at.After(now) && !tr.held[k].After(now) && !tr.running[k] && len(tr.running) < tr.limit && !tr.paused {
			key = k
		}
	}
	return key, len(tr.running)
}

// job returns a job of random length that sometimes requeues, and sometimes delays its key.
func (tr *tracker) job(seed uint64) job {
	return func(_ context.Context, it item) outcome {
		tr.start(it.Key)
		rng := rand.New(rand.NewPCG(seed, uint64(time.Now().UnixNano())))
		time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
		var out outcome
		if rng.IntN(4) == 0 {
			out.Requeue, out.After = true, time.Duration(rng.IntN(1000))*time.Millisecond
			tr.want(it.Key, time.Now().Add(out.After))
		}
		if rng.IntN(10) == 0 {
			out.Delay = time.Duration(rng.IntN(3000)) * time.Millisecond
		}
		tr.end(it.Key, out.Delay)
		return out
	}
}

// checkAtRest checks the conditions that hold whenever everything is idle: a due and free key runs, unless the pool has
// no slot for it.
func checkAtRest(t *testing.T, trackers []*tracker, limit int) {
	t.Helper()
	taken, shared := 0, 0
	for _, tr := range trackers {
		_, running := tr.startable()
		taken += running
		shared += max(0, running-1)
	}
	if taken > limit {
		t.Errorf("%d jobs run in a pool of %d", taken, limit)
	}
	for i, tr := range trackers {
		if key, running := tr.startable(); key != "" && taken < limit && (running == 0 || shared < limit-len(trackers)) {
			t.Errorf("runner %d: %s is due and free, and only %d jobs run, %d in all", i, key, running, taken)
		}
	}
}

// act makes one random request of a runner, or pauses or resumes it.
func (tr *tracker) act(rng *rand.Rand, f *fixture) {
	switch n := rng.IntN(60); {
	case n == 0:
		tr.setPaused(true)
		f.Pause()
		return
	case n < 5:
		tr.setPaused(false)
		f.Resume()
		return
	}
	req := request{Key: fmt.Sprint(rng.IntN(20))}
	switch rng.IntN(4) {
	case 0:
		req.At = time.Now().Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
	case 1:
		req.Priority = scheduler.Low
	}
	tr.want(req.Key, req.At)
	f.sendBatch(req)
}

// rules 1, 2, 3, 5, 6 and 25 on random requests to three runners that share a pool, with pauses, delays and, in some
// runs, a debounce: never two runs of a key at once, never more than the limits, a released slot is used at once, no
// run before its time or without a reason, and every request is followed by a run that started after it.
func TestRunner_RandomRequestsKeepTheRules(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 1))
				var debounce scheduler.Debounce
				if seed%3 > 0 {
					debounce = scheduler.Debounce{Quiet: 100 * time.Millisecond, Max: time.Duration(seed%3) * 150 * time.Millisecond}
				}
				limit := 3 + rng.IntN(5)
				cfg := config{Pool: newPool(t, limit), Scheduler: scheduler.Config[string]{Debounce: debounce}}
				var trackers []*tracker
				var fixtures []*fixture
				for i := range uint64(3) {
					cfg.Concurrency = 1 + rng.IntN(4)
					trackers = append(trackers, newTracker(t, cfg.Concurrency, debounce))
					fixtures = append(fixtures, newReady(t, cfg, trackers[i].job(seed*3+i)))
				}
				synctest.Wait()
				for range 2000 {
					time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
					synctest.Wait()
					checkAtRest(t, trackers, limit)
					i := rng.IntN(3)
					trackers[i].act(rng, fixtures[i])
				}
				for i, tr := range trackers {
					tr.finish(t, fixtures[i])
				}
			})
		})
	}
}

// finish lets a runner end, as one job in four requeues, and checks that nothing was lost.
func (tr *tracker) finish(t *testing.T, f *fixture) {
	t.Helper()
	tr.setPaused(false)
	f.Resume()
	time.Sleep(time.Hour)
	synctest.Wait()
	if len(tr.wanted) > 0 || len(tr.running) > 0 {
		t.Fatalf("lost: %v; still running: %v", tr.wanted, tr.running)
	}
	if s := f.Stats(); tr.runs > tr.asked || tr.runs < 50 || tr.runs != int(s.Started) || s != (runner.Stats{Started: s.Started, Received: s.Received, Requeued: s.Requeued}) {
		t.Fatalf("%d runs for %d requests and requeues, stats %+v", tr.runs, tr.asked, s)
	}
}
