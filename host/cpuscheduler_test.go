// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// unused fails the test unless every CPU is free and no call waits.
func unused(tb testing.TB, s *share.CPUScheduler, cpus int) {
	tb.Helper()
	if s.Free() != cpus || s.Waiting() > 0 {
		tb.Errorf("%d CPUs are free and %d calls wait, want %d and 0", s.Free(), s.Waiting(), cpus)
	}
}

// A module with one call gets as much as one with three, and a tenant with one module as much
// as one with three: its call ends before any of theirs, although they came first.
func TestCPUScheduler_ModulesGetTimeSlicesInTurn(t *testing.T) {
	for name, tenants := range map[string][]string{"one tenant": {"a", "a"}, "two tenants": {"many", "many", "many", "one"}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) { lastEndsFirst(t, tenants) })
		})
	}
}

// lastEndsFirst makes three calls, of the modules but the last in turn, and then one call of the last module.
func lastEndsFirst(t *testing.T, tenants []string) {
	t.Helper()
	s := share.NewCPUScheduler(1)
	var modules []*Module
	for _, tenant := range tenants {
		modules = append(modules, loaded(t, wasm.Work, Config{Process: Process{Tenant: tenant, CPUs: s, slice: 50_000}}))
	}
	last := len(modules) - 1
	if !s.Take(&share.Module{}, false, nil) { // nobody starts before all wait
		t.Fatal("no turn")
	}
	ended := make(chan *Module, 4)
	for _, m := range []*Module{modules[0], modules[1%last], modules[2%last], modules[last]} {
		g := acquire(t, m)
		go func() {
			if _, err := g.Reconcile(t.Context(), work(10_000_000, 0)); err != nil {
				t.Error(err)
			}
			ended <- m
		}()
		synctest.Wait()
	}
	if n := s.Waiting(); n != 4 {
		t.Fatalf("%d wait, want 4", n)
	}
	s.Give()
	if first := <-ended; first != modules[last] {
		t.Error("the others ended a call first")
	}
	for range 3 {
		<-ended
	}
	unused(t, s, 1)
}

// Who waits for a turn runs out of time as who runs, and can be cancelled.
func TestCPUScheduler_WaitingEndsWithTheCall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := share.NewCPUScheduler(1)
		m := loaded(t, wasm.Modes, Config{Process: Process{CPUs: s}})
		if !s.Take(&share.Module{}, false, nil) {
			t.Fatal("no turn")
		}
		start := time.Now()
		_, err := acquire(t, m).Reconcile(t.Context(), request(2))
		if ce := callError(t, err); ce.Kind != abi.FailureTimeout || time.Since(start) != share.DefaultTimeout {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		if _, err := acquire(t, m).Reconcile(ctx, request(2)); !errors.Is(err, stop) {
			t.Errorf("cancelled: %v", err)
		}
		s.Give()
		unused(t, s, 1)
	})
}

// A guest whose operation waits leaves the CPU to others meanwhile.
func TestCPUScheduler_OperationsUseNoTimeSlice(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := share.NewCPUScheduler(1)
		cfg := Config{Process: Process{CPUs: s, slice: 1000}}
		other := acquire(t, loaded(t, wasm.Work, cfg))
		cfg.API = apiOf(&scriptedAPI{f: func(context.Context, abi.Op, []byte) abi.Response {
			if s.Free() != 1 {
				t.Error("the guest has a turn while it waits for its operation")
			}
			if _, err := other.Reconcile(t.Context(), work(10_000, 0)); err != nil {
				t.Errorf("another module, meanwhile: %v", err)
			}
			return abi.Response{}
		}})
		g := acquire(t, loaded(t, wasm.Work, cfg))
		if _, err := g.Reconcile(t.Context(), work(10_000, 2)); err != nil {
			t.Error(err)
		}
		unused(t, s, 1)
	})
}

// A call that ends within its first slices waits for nobody.
func TestCPUScheduler_ShortCallsDoNotWait(t *testing.T) {
	s := share.NewCPUScheduler(1)
	if !s.Take(&share.Module{}, false, nil) {
		t.Fatal("no turn")
	}
	m := loaded(t, wasm.Modes, Config{Process: Process{CPUs: s}})
	g := acquire(t, m)
	for range 10 {
		if _, err := g.Reconcile(t.Context(), request(11)); err != nil {
			t.Fatal(err)
		}
	}
	s.Give()
	unused(t, s, 1)
}

// A tenant with many short calls takes turns for them, too, with all of its modules. The short
// calls of another tenant do not wait, and time pays.
func TestCPUScheduler_ManyShortCallsTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		inThisProcess(t) // other processes have no turns
		s := share.NewCPUScheduler(1)
		run := func(ctx context.Context, m *Module) error {
			g, release, err := m.Acquire(ctx)
			if err != nil {
				return err
			}
			defer release()
			_, err = g.Reconcile(ctx, work(10_000, 0))
			return err
		}
		of := func(tenant string) *Module {
			return loaded(t, wasm.Work, Config{Process: Process{Tenant: tenant, CPUs: s, slice: 1_000_000}})
		}
		many := []*Module{of("many"), of("many")}
		few := of("few")
		if !s.Take(&share.Module{}, false, nil) {
			t.Fatal("no turn")
		}
		calls := 0
		for ; calls < 100_000; calls++ {
			ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
			err := run(ctx, many[calls%2])
			cancel()
			if err != nil {
				break
			}
		}
		if calls < 40 || calls == 100_000 {
			t.Errorf("a call waits after %d calls", calls)
		}
		if err := run(t.Context(), few); err != nil {
			t.Errorf("the other tenant: %v", err)
		}
		<-time.After(time.Second)
		if err := run(t.Context(), many[0]); err != nil {
			t.Errorf("a second later: %v", err)
		}
		s.Give()
		unused(t, s, 1)
	})
}
