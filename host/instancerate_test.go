// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// dies makes runs that trap, and returns how long they took altogether.
func dies(t *testing.T, m *Module, runs int) time.Duration {
	t.Helper()
	start := time.Now()
	for range runs {
		g, release, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Reconcile(t.Context(), request(1)); err == nil {
			t.Fatal("it traps")
		}
		release()
	}
	return time.Since(start)
}

// A module whose runs trap has one second's instances at once, and then as many
// as come back; one that does not trap waits for nothing.
func TestInstanceRate_BoundsAModuleThatDies(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := loaded(t, wasm.Modes, Config{})
		// The first run takes the instance of loading.
		if took := dies(t, m, share.InstanceRate+1); took != 0 {
			t.Errorf("the first second's instances took %v", took)
		}
		if n := m.LimitStats()[abi.LimitInstanceRate]; n != 0 {
			t.Errorf("the limit was reached %d times", n)
		}
		if took := dies(t, m, 5); took != 50*time.Millisecond {
			t.Errorf("five more took %v, want 50ms", took)
		}
		if n := m.LimitStats()[abi.LimitInstanceRate]; n != 5 {
			t.Errorf("the limit was reached %d times, want 5", n)
		}
		g := acquire(t, m) // the one more takes 10ms
		start := time.Now()
		for range 1000 {
			if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("runs that do not trap took %v", took)
		}
	})
}

// Another module does not notice, and neither do loading and a change of the
// settings.
func TestInstanceRate_IsOfTheRunsOfOneModule(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m, other := loaded(t, wasm.Modes, Config{}), loaded(t, wasm.Modes, Config{})
		dies(t, m, share.InstanceRate+3)
		start := time.Now()
		if _, err := acquire(t, other).Reconcile(t.Context(), request(0)); err != nil {
			t.Error(err)
		}
		if err := m.Configure(t.Context(), map[string]string{"a": "b"}); err != nil {
			t.Error(err)
		}
		loaded(t, wasm.Modes, Config{})
		if took := time.Since(start); took != 0 {
			t.Errorf("they waited for %v", took)
		}
	})
}

// Who waits for an instance stops with its context and with the revision, and
// a run that has less time than it would wait is refused at once, with the
// limit's name and value.
func TestInstanceRate_WaitingEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := loaded(t, wasm.Modes, Config{})
		dies(t, m, share.InstanceRate+1)
		short, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, _, err := m.Acquire(short)
		want := "module[module]: acquire: too many fresh instances, and this run has no time to wait for one (instance_rate 100)"
		if !errors.Is(err, abi.ErrLimit) || err.Error() != want || time.Since(start) != 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		stop := errors.New("stop")
		ctx, end := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Millisecond, func() { end(stop) })
		if _, _, err := m.Acquire(ctx); !errors.Is(err, stop) || time.Since(start) != time.Millisecond {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		g := m.last.Load()
		time.AfterFunc(time.Millisecond, g.spec.All.Interrupt)
		if _, _, err := m.Acquire(t.Context()); err == nil || time.Since(start) != 2*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if m.Healthy() != nil {
			t.Errorf("a module that waits counts as one that cannot be instantiated: %v", m.Healthy())
		}
	})
}

// Whatever is asked for when: as many places as a dumb list of the times at which
// they were given says, and never more than the rate and one second's.
func TestInstanceRate_AgreesWithAModel(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 9))
		rate := int64(1 + rng.IntN(20))
		var r share.Bucket
		start := time.Unix(1e9, 0)
		now := start
		var last time.Time // when the last place is free, had there been no second in advance
		for range 200 {
			now = now.Add(time.Duration(rng.IntN(200)) * time.Millisecond)
			most := time.Duration(rng.IntN(3000)) * time.Millisecond
			each := time.Second / time.Duration(rate)
			if last.Before(now) {
				last = now
			}
			want := max(0, last.Add(each).Add(-time.Second).Sub(now))
			got, ok := r.Reserve(now, rate, 1, most)
			if diff := got - want; ok != (want <= most) && (want-most).Abs() > time.Microsecond || ok && diff.Abs() > time.Microsecond {
				t.Fatalf("seed %d: got %v, %v; want %v of %v", seed, got, ok, want, most)
			}
			if ok {
				last = last.Add(each)
			}
		}
	}
}

// Hammer: many runs at once that all trap need as many instances as the rate
// allows, whichever run stops waiting.
func TestInstanceRate_Hammer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const rate, workers = share.InstanceRate, 8
		m := loaded(t, wasm.Modes, Config{Concurrency: workers})
		var mu sync.Mutex
		died := 0
		start := time.Now()
		var wg sync.WaitGroup
		for w := range workers {
			rng := rand.New(rand.NewPCG(uint64(w), 3))
			wg.Go(func() {
				for time.Since(start) < 10*time.Second {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(1000))*time.Millisecond)
					g, release, err := m.Acquire(ctx)
					if err == nil {
						if _, err = g.Reconcile(context.Background(), request(1)); err != nil {
							mu.Lock()
							died++
							mu.Unlock()
						}
						release()
					} else {
						<-time.After(time.Millisecond) // refused at once
					}
					cancel()
				}
			})
		}
		wg.Wait()
		if most := rate*11 + workers + 1; died > most || died < rate*8 {
			t.Errorf("%d instances died in ten seconds, want %d to %d", died, rate*8, most)
		}
	})
}
