package host

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// waiting is how many wait for a turn.
func (s *CPUScheduler) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, l := range s.timeSlices.ring {
		n += len(l.waiters)
	}
	return n
}

// unused fails the test unless every CPU is free and nobody waits.
func unused(tb testing.TB, s *CPUScheduler, cpus int) {
	tb.Helper()
	if s.mu.Lock(); s.timeSlices.free != cpus || len(s.timeSlices.ring) > 0 {
		tb.Errorf("%d CPUs are free and %d modules wait, want %d and 0", s.timeSlices.free, len(s.timeSlices.ring), cpus)
	}
	s.mu.Unlock()
}

// Hammer: never more time slices at once than CPUs, and none is lost when
// waiters give up in between.
func TestCPUScheduler_Hammer(t *testing.T) {
	const cpus = 3
	s := NewCPUScheduler(cpus)
	modules := []*shared{{}, {}, {}, {}}
	var running, most, gone atomic.Int64
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 300 {
				done := make(chan struct{})
				if i%3 == 0 {
					go close(done)
				}
				has := s.take(modules[w%4], false, done)
				for round := 0; has && round < 3; round++ {
					n := running.Add(1)
					for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
					}
					runtime.Gosched()
					running.Add(-1)
					has = s.take(modules[w%4], true, done)
				}
				if has {
					s.give()
				} else {
					gone.Add(1)
				}
			}
		})
	}
	wg.Wait()
	unused(t, s, cpus)
	if most.Load() > cpus || gone.Load() == 0 {
		t.Errorf("%d at once of %d; %d stopped waiting", most.Load(), cpus, gone.Load())
	}
}

// A module with one call gets as much as one with three: its call ends before
// any of theirs, although they came first.
func TestCPUScheduler_ModulesGetTimeSlicesInTurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := NewCPUScheduler(1)
		cfg := Config{CPUScheduler: s, slice: 50_000}
		greedy, modest := load(t, wasm.Work, cfg), load(t, wasm.Work, cfg)
		if !s.take(&shared{}, false, nil) { // nobody starts before all wait
			t.Fatal("no turn")
		}
		ended := make(chan *Module, 4)
		for _, m := range []*Module{greedy, greedy, greedy, modest} {
			g := acquire(t, m)
			go func() {
				if _, err := g.Reconcile(t.Context(), work(10_000_000, 0)); err != nil {
					t.Error(err)
				}
				ended <- m
			}()
			synctest.Wait()
		}
		if n := s.waiting(); n != 4 {
			t.Fatalf("%d wait, want 4", n)
		}
		s.give()
		if first := <-ended; first != modest {
			t.Error("the module with three calls ended one first")
		}
		for range 3 {
			<-ended
		}
		unused(t, s, 1)
	})
}

// Who waits for a turn runs out of time as who runs, and can be cancelled.
func TestCPUScheduler_WaitingEndsWithTheCall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := NewCPUScheduler(1)
		m := load(t, wasm.Modes, Config{CPUScheduler: s})
		if !s.take(&shared{}, false, nil) {
			t.Fatal("no turn")
		}
		start := time.Now()
		_, err := acquire(t, m).Reconcile(t.Context(), request(2))
		if ce := callError(t, err); ce.Kind != abi.FailureTimeout || time.Since(start) != DefaultTimeout {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		if _, err := acquire(t, m).Reconcile(ctx, request(2)); !errors.Is(err, stop) {
			t.Errorf("cancelled: %v", err)
		}
		s.give()
		unused(t, s, 1)
	})
}

// A guest whose operation waits leaves the CPU to others meanwhile.
func TestCPUScheduler_OperationsUseNoTimeSlice(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := NewCPUScheduler(1)
		cfg := Config{CPUScheduler: s, slice: 1000}
		other := acquire(t, load(t, wasm.Work, cfg))
		cfg.API = apiOf(&scriptedAPI{f: func(context.Context, abi.Op, []byte) abi.Response {
			if s.timeSlices.free != 1 {
				t.Error("the guest has a turn while it waits for its operation")
			}
			if _, err := other.Reconcile(t.Context(), work(10_000, 0)); err != nil {
				t.Errorf("another module, meanwhile: %v", err)
			}
			return abi.Response{}
		}})
		g := acquire(t, load(t, wasm.Work, cfg))
		if _, err := g.Reconcile(t.Context(), work(10_000, 2)); err != nil {
			t.Error(err)
		}
		unused(t, s, 1)
	})
}

// A call that ends within its first slices waits for nobody.
func TestCPUScheduler_ShortCallsDoNotWait(t *testing.T) {
	s := NewCPUScheduler(1)
	if !s.take(&shared{}, false, nil) {
		t.Fatal("no turn")
	}
	m := load(t, wasm.Modes, Config{CPUScheduler: s})
	g := acquire(t, m)
	for range 10 {
		if _, err := g.Reconcile(t.Context(), request(11)); err != nil {
			t.Fatal(err)
		}
	}
	s.give()
	unused(t, s, 1)
}
