// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/binary"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// pages is a number of bytes.
func pages(n int64) int64 { return n * share.PageSize }

// used checks what a budget says is in use.
func used(tb testing.TB, b *share.Budget, want int64) {
	tb.Helper()
	if got := b.Stats().Used; got != want {
		tb.Errorf("%s are in use, want %s", share.SizeText(got), share.SizeText(want))
	}
}

func TestBudget_CountsEveryInstanceUntilItIsClosed(t *testing.T) {
	b := share.NewBudget(pages(100), 0)
	m, err := Load(t.Context(), wasm.Calls, Config{Process: Process{Budget: b}}) // 4 pages
	if err != nil {
		t.Fatal(err)
	}
	used(t, b, pages(4))
	first, second := acquire(t, m), acquire(t, m)
	used(t, b, pages(8))
	first.release()
	second.release()
	used(t, b, pages(8)) // idle ones count
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	used(t, b, 0)
	if _, err := Load(t.Context(), wasm.StartTrap, Config{Process: Process{Budget: b}}); err == nil {
		t.Error("it traps in its start code")
	}
	if _, err := Describe(t.Context(), wasm.Describe, Config{Process: Process{Budget: b}}); err != nil {
		t.Error(err)
	}
	used(t, b, 0)
	if n := b.Stats().Pools; n != 0 {
		t.Errorf("%d revisions are still known", n)
	}
}

// An exhausted budget takes the memory of the instance that has been idle
// longest, of any module; all modules keep working.
func TestBudget_ClosesWhatHasBeenIdleLongest(t *testing.T) {
	b := share.NewBudget(pages(2), 0)
	var modules []*Module
	for i := range 3 {
		modules = append(modules, loaded(t, wasm.Empty, Config{Name: fmt.Sprint(i), Process: Process{Budget: b}}))
		used(t, b, pages(min(int64(i)+1, 2)))
	}
	idle := func() (out []int) {
		for _, m := range modules {
			out = append(out, len(m.last.Load().pool.idle))
		}
		return out
	}
	for _, step := range []struct {
		run  int
		want string
	}{{2, "[0 1 1]"}, {0, "[1 0 1]"}, {2, "[1 0 1]"}, {1, "[0 1 1]"}} {
		g, release, err := modules[step.run].Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
			t.Error(err)
		}
		release()
		if got := fmt.Sprint(idle()); got != step.want {
			t.Errorf("after a run of %d idle instances are %s, want %s", step.run, got, step.want)
		}
	}
}

// Where nothing is idle a new instance is refused, clearly and for that call
// only.
func TestBudget_RefusesWhereAllIsInUse(t *testing.T) {
	b := share.NewBudget(pages(2), 0)
	m := loaded(t, wasm.Empty, Config{Name: "m", Process: Process{Budget: b}})
	first := acquire(t, m)
	acquire(t, m)
	_, _, err := m.Acquire(t.Context())
	want := "module[m]: acquire: memory budget exhausted: 128Ki of 128Ki in use, 128Ki by tenant controller/m with a share of 128Ki, no idle instance to close, 64Ki more needed: raise the budget, or lower concurrency or memory limits (memory_budget 128Ki)"
	if !errors.Is(err, share.ErrMemoryBudget) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := Load(t.Context(), wasm.Empty, Config{Name: "m", Process: Process{Budget: b}}); !errors.Is(err, share.ErrMemoryBudget) || errors.Is(err, load.ErrInvalidModule) {
		t.Errorf("another module: %v", err)
	}
	if err := m.Configure(t.Context(), map[string]string{"a": "b"}); !errors.Is(err, share.ErrMemoryBudget) {
		t.Errorf("configure: %v", err)
	}
	if _, err := first.Reconcile(t.Context(), request(0)); err != nil {
		t.Errorf("who has memory: %v", err)
	}
	first.release()
	if _, err := acquire(t, m).Reconcile(t.Context(), request(0)); err != nil {
		t.Error(err)
	}
	if s := b.Stats(); s.Refused != 3 || s.Limit != pages(2) {
		t.Errorf("%+v, want 3 refusals", s)
	}
}

// A guest that grows takes the memory of idle ones, and is refused beyond: rule
// 17, a failure of that run of kind memory.
func TestBudget_GrowingGuest(t *testing.T) {
	b := share.NewBudget(pages(10), 0)
	m := loaded(t, wasm.Modes, Config{Process: Process{Budget: b}}) // 1 page
	other := loaded(t, wasm.Empty, Config{Process: Process{Budget: b}})
	g := acquire(t, m)
	if _, err := g.Reconcile(t.Context(), request(15)); err != nil { // grows until refused, and copes
		t.Fatal(err)
	}
	used(t, b, pages(10))
	if got := g.in.Size(); got != pages(10) || len(other.last.Load().pool.idle) != 0 {
		t.Errorf("the guest has %s, and %d instances are idle", share.SizeText(got), len(other.last.Load().pool.idle))
	}
	_, err := g.Reconcile(t.Context(), request(4)) // grows, and traps once it is refused
	ce := callError(t, err)
	if ce.Kind != abi.FailureMemory || !errors.Is(err, share.ErrMemoryBudget) || !strings.HasPrefix(err.Error(), "guest[reconcile]: memory: memory budget exhausted: 640Ki of 640Ki in use") {
		t.Errorf("got %v", err)
	}
	used(t, b, 0)
	if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
		t.Errorf("the next run: %v", err)
	}
}

// Hammer: modules that share too small a budget work, grow, trap, are loaded
// and closed. Nothing panics, the budget is never exceeded, and what it counts
// is what the instances have.
func TestBudget_Hammer(t *testing.T) {
	workers, rounds := 4, 60
	if testing.Short() {
		workers, rounds = 3, 20
	}
	b := share.NewBudget(pages(24), 0)
	modules := make([]*Module, 3)
	for i := range modules {
		modules[i] = loaded(t, wasm.Modes, Config{Concurrency: 2, Process: Process{Budget: b}, Limits: share.Limits{Memory: pages(9)}})
	}
	var wg sync.WaitGroup
	for w := range workers {
		rnd := rand.New(rand.NewPCG(uint64(w), 7))
		wg.Go(func() {
			for range rounds {
				if s := b.Stats(); s.Used > s.Limit || s.Used < 0 {
					t.Errorf("%+v", s)
				}
				if rnd.IntN(10) == 0 {
					hammerLoad(t, b)
					continue
				}
				hammerRun(t, modules[rnd.IntN(len(modules))], []byte{0, 0, 1, 4, 15}[rnd.IntN(5)])
			}
		})
	}
	wg.Wait()
	var sum int64
	for _, m := range modules {
		for _, in := range m.last.Load().pool.idle {
			sum += in.Size()
		}
	}
	used(t, b, sum)
	for _, m := range modules {
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	used(t, b, 0)
}

// TestBudget_AnInstanceThatARunTakesFirst: where a run takes the instance that is about to
// be closed for its memory, the module can be closed all the same.
func TestBudget_AnInstanceThatARunTakesFirst(t *testing.T) {
	b := share.NewBudget(pages(24), 0)
	m := loaded(t, wasm.Modes, Config{Process: Process{Budget: b}, Limits: share.Limits{Memory: pages(9)}})
	g := m.last.Load()
	var wg sync.WaitGroup
	const enough = 1000
	account := share.NewAccount(b, m.cfg.Process.Tenant, share.Operations)
	var evicted atomic.Int64
	for range 2 {
		wg.Go(func() {
			for evicted.Load() < enough {
				if account.Take(pages(24)) == nil {
					account.Give(pages(24))
					evicted.Add(1)
				}
			}
		})
	}
	for evicted.Load() < enough {
		g.park(g.pool.popNewest())
		if g.spec.All.Len() == 0 {
			in, err := g.newInstance(t.Context(), g.settings.Load())
			if errors.Is(err, share.ErrMemoryBudget) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			g.park(in)
		}
	}
	wg.Wait()
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	used(t, b, 0)
}

func hammerLoad(t *testing.T, b *share.Budget) {
	t.Helper()
	m, err := Load(context.Background(), wasm.Empty, Config{Process: Process{Budget: b}})
	if errors.Is(err, share.ErrMemoryBudget) {
		return
	}
	if err == nil {
		err = m.Close(context.Background())
	}
	if err != nil {
		t.Error(err)
	}
}

func hammerRun(t *testing.T, m *Module, mode byte) {
	t.Helper()
	g, release, err := m.Acquire(context.Background())
	if err != nil {
		if !errors.Is(err, share.ErrMemoryBudget) {
			t.Error(err)
		}
		return
	}
	defer release()
	if _, err = g.Reconcile(context.Background(), request(mode)); err != nil {
		if _, ok := errors.AsType[*abi.CallError](err); !ok {
			t.Error(err)
		}
	}
}

// Memory outside of linear memory counts, too: a module with 100,000 globals does not fit into
// a budget that its linear memory fits into.
func TestBudget_CountsGlobals(t *testing.T) {
	secs, err := binary.Sections(wasm.Empty)
	if err != nil {
		t.Fatal(err)
	}
	const globals = 100_000
	section := append(binary.AppendU32(nil, globals), bytes.Repeat([]byte{0x7f, 1, 0x41, 0, 0x0b}, globals)...)
	greedy, added := []byte(binary.Header), false
	for _, s := range secs {
		if s.ID > binary.SectionGlobal && !added {
			greedy, added = binary.AppendSection(greedy, binary.SectionGlobal, section), true
		}
		greedy = append(greedy, wasm.Empty[s.Start:s.End]...)
	}
	_, err = Load(t.Context(), greedy, Config{Process: Process{Budget: share.NewBudget(pages(100), 0)}})
	if !errors.Is(err, share.ErrMemoryBudget) {
		t.Errorf("got %v", err)
	}
	b := share.NewBudget(pages(1000), 0)
	m := loaded(t, greedy, Config{Process: Process{Budget: b}})
	if got := b.Stats().Used; got < globals*64 {
		t.Errorf("%s are in use", share.SizeText(got))
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	used(t, b, 0)
}
