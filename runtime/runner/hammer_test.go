// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/runner"
	"github.com/wasmctl/wasmctl/runtime/scheduler"
)

const hammerKeys = 50

// hammered is one run of the hammer test: real goroutines, real time, no bubble.
type hammered struct {
	t       *testing.T
	asked   [hammerKeys]atomic.Int64 // requests made for each key
	seen    [hammerKeys]atomic.Int64 // the value of asked that the last run of the key read when it started
	running [hammerKeys]atomic.Int32
	total   atomic.Int32
}

const hammerLimit = 8

func (h *hammered) job(_ context.Context, it scheduler.Item[int, string]) scheduler.Next[string] {
	if h.running[it.Key].Add(1) != 1 {
		h.t.Errorf("key %d runs twice at once", it.Key)
	}
	if n := h.total.Add(1); n > hammerLimit {
		h.t.Errorf("%d jobs at once", n)
	}
	h.seen[it.Key].Store(h.asked[it.Key].Load())
	runtime.Gosched()
	h.total.Add(-1)
	h.running[it.Key].Add(-1)
	return scheduler.Next[string]{Requeue: it.Key%5 == 0, After: 50 * time.Microsecond}
}

// produce sends random batches; each request is counted before it is sent.
func (h *hammered) produce(requests chan<- []scheduler.Request[int, string], seed uint64, batches int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for range batches {
		batch := make([]scheduler.Request[int, string], 1+rng.IntN(4))
		for i := range batch {
			batch[i].Key = rng.IntN(hammerKeys)
			batch[i].Priority = scheduler.Low + scheduler.Priority(rng.IntN(2))
			h.asked[batch[i].Key].Add(1)
		}
		requests <- batch
	}
}

// rules 1, 2, 5 and 9 under real concurrency: producers, jobs and readers of Stats run at the same time; then the input
// ends, nothing is lost, and no goroutine is left.
func TestRunner_Hammer(t *testing.T) {
	producers, batches := 8, 1000
	if testing.Short() {
		producers, batches = 4, 200
	}
	before := runtime.NumGoroutine()
	h := &hammered{t: t}
	r, err := runner.New(runner.Config[string]{Concurrency: hammerLimit}, h.job)
	if err != nil {
		t.Fatal(err)
	}
	requests := make(chan []scheduler.Request[int, string])
	ended := make(chan error, 1)
	go func() { ended <- r.Run(t.Context(), runner.Input[int, string]{Requests: requests}) }()

	var wg sync.WaitGroup
	for seed := range producers {
		wg.Go(func() { h.produce(requests, uint64(seed), batches) })
		wg.Go(func() {
			for range batches {
				if s := r.Stats(); s.Running < 0 || s.Running > hammerLimit || s.Ready < 0 || s.Ready > hammerKeys || s.Waiting < 0 {
					t.Errorf("stats %+v", s)
				}
			}
		})
	}
	wg.Wait()
	close(requests)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for key := range hammerKeys {
		if asked, seen := h.asked[key].Load(), h.seen[key].Load(); asked != seen {
			t.Errorf("key %d: %d requests, the last run started after %d", key, asked, seen)
		}
	}
	waitForGoroutines(t, before)
}

// rule 9 under real concurrency: a stop at a random moment ends Run, and no goroutine is left.
func TestRunner_HammerStop(t *testing.T) {
	before := runtime.NumGoroutine()
	for seed := range uint64(50) {
		h := &hammered{t: t}
		r, err := runner.New(runner.Config[string]{Concurrency: hammerLimit}, h.job)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		requests := make(chan []scheduler.Request[int, string])
		go func() {
			at := rand.New(rand.NewPCG(seed, 0)).IntN(200)
			for i := 0; ; i++ {
				if i == at {
					stop()
				}
				select {
				case requests <- []scheduler.Request[int, string]{{Key: i % hammerKeys}}:
				case <-ctx.Done():
					return
				}
			}
		}()
		if err := r.Run(ctx, runner.Input[int, string]{Requests: requests}); err != nil {
			t.Fatal(err)
		}
		if n := h.total.Load(); n != 0 {
			t.Fatalf("Run returned while %d jobs were running", n)
		}
	}
	waitForGoroutines(t, before)
}

// waitForGoroutines fails the test if more goroutines are left than there were. A goroutine may need a moment to exit
// after its work is done.
func waitForGoroutines(t *testing.T, before int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}
