package runner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// tracker watches jobs and requests from outside and knows what must hold at any time.
type tracker struct {
	t     *testing.T
	limit int

	mu      sync.Mutex
	running map[string]bool      // guarded by mu
	wanted  map[string]time.Time // guarded by mu; keys that must still be started, and when
	asked   int                  // guarded by mu; requests and requeues
	runs    int                  // guarded by mu
}

func newTracker(t *testing.T, limit int) *tracker {
	return &tracker{t: t, limit: limit, running: map[string]bool{}, wanted: map[string]time.Time{}}
}

// want notes a request or requeue that is about to be made: a run of the key has to start after this, at that time if nothing is in its way.
func (tr *tracker) want(key string, at time.Time) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.asked++
	if old, ok := tr.wanted[key]; !ok || at.Before(old) {
		tr.wanted[key] = at
	}
}

func (tr *tracker) start(key string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if tr.running[key] {
		tr.t.Errorf("%s runs twice at once", key)
	}
	at, ok := tr.wanted[key]
	if !ok {
		tr.t.Errorf("%s started for nothing", key)
	} else if time.Now().Before(at) {
		tr.t.Errorf("%s started %v early", key, time.Until(at))
	}
	delete(tr.wanted, key)
	tr.running[key] = true
	tr.runs++
	if len(tr.running) > tr.limit {
		tr.t.Errorf("%d jobs run at once", len(tr.running))
	}
}

func (tr *tracker) end(key string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	delete(tr.running, key)
}

// checkAtRest must hold whenever nothing moves: what is due runs, unless its key or every slot is busy.
func (tr *tracker) checkAtRest() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for key, at := range tr.wanted {
		if !at.After(time.Now()) && !tr.running[key] && len(tr.running) < tr.limit {
			tr.t.Errorf("%s is due for %v and free, and only %d jobs run", key, time.Since(at), len(tr.running))
		}
	}
}

// job returns a job of random length that sometimes requeues.
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
		tr.end(it.Key)
		return out
	}
}

// rules 1, 2, 3, 5 and 25 on random requests over 20 keys: never two runs of a key at once, never more than the limit, a freed slot is used at
// once, no run before its time or for nothing, and every request is followed by a run that started after it.
func TestRunner_RandomRequestsKeepTheRules(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			tr := newTracker(t, 3)
			f := newReady(t, config{Concurrency: tr.limit}, tr.job(seed))
			rng := rand.New(rand.NewPCG(seed, 1))
			const requests = 2000
			for range requests {
				time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
				synctest.Wait()
				tr.checkAtRest()
				req := request{Key: fmt.Sprint(rng.IntN(20))}
				if rng.IntN(3) == 0 {
					req.At = time.Now().Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
				}
				at := req.At
				if at.IsZero() {
					at = time.Now()
				}
				tr.want(req.Key, at)
				f.sendBatch(req)
			}
			time.Sleep(time.Hour) // one in four requeues, so it comes to an end
			synctest.Wait()
			if len(tr.wanted) > 0 || len(tr.running) > 0 {
				t.Fatalf("lost: %v; still running: %v", tr.wanted, tr.running)
			}
			if tr.runs > tr.asked || tr.runs < requests/10 || tr.runs != int(f.Stats().Started) {
				t.Fatalf("%d runs for %d requests and requeues, stats %+v", tr.runs, tr.asked, f.Stats())
			}
		})
	}
}
