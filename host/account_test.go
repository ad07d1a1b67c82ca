// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// Accounts of one budget take and give as a sum of numbers does that stays within
// the limit.
func TestAccount_IsASumWithinTheBudget(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		const limit = 100
		b := share.NewBudget(limit, 0)
		accounts := []*share.Account{share.NewAccount(b, "t", share.Operations), share.NewAccount(b, "t", share.Operations), share.NewAccount(nil, "", share.Operations), nil}
		held := make([][]int64, len(accounts))
		want, sum := make([]int64, len(accounts)), int64(0)
		for range 200 {
			i := rnd.IntN(len(accounts))
			if n := len(held[i]); n > 0 && rnd.IntN(2) == 0 {
				accounts[i].Give(held[i][n-1])
				want[i] -= held[i][n-1]
				held[i] = held[i][:n-1]
			} else {
				n := rnd.Int64N(60)
				fits := i > 1 || sum+n <= limit
				err := accounts[i].Take(n)
				if limitErr, ok := errors.AsType[*abi.LimitError](err); ok == fits || ok && limitErr.Limit != abi.LimitMemoryBudget {
					t.Fatalf("seed %d: take %d with %d in use: %v", seed, n, sum, err)
				}
				if err == nil {
					held[i] = append(held[i], n)
					want[i] += n
				}
			}
			sum = want[0] + want[1]
			for k, a := range accounts[:3] {
				if a.Used() != want[k] {
					t.Fatalf("seed %d: account %d: %d, want %d", seed, k, a.Used(), want[k])
				}
			}
			used(t, b, sum)
		}
	}
}

// An account makes room as an instance does: by closing idle ones.
func TestAccount_ClosesIdleInstances(t *testing.T) {
	b := share.NewBudget(pages(5), 0)
	m := loaded(t, wasm.Calls, Config{Process: Process{Budget: b}}) // 4 pages, idle
	a := share.NewAccount(b, "t", share.Operations)
	if err := a.Take(pages(3)); err != nil || len(m.last.Load().pool.idle) != 0 {
		t.Errorf("%v, %d instances are idle", err, len(m.last.Load().pool.idle))
	}
	used(t, b, pages(3))
}

// A module that exhausts the budget with requests under way gets BUDGET for the
// next, and another module goes on with small ones.
func TestAccount_ExhaustedByRequests(t *testing.T) {
	inThisProcess(t) // it reads the memory of a guest
	const large = 200 << 10
	b := share.NewBudget(pages(12)+operation.RequestCopies*large, 0)
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := &scriptedAPI{f: func(ctx context.Context, _ abi.Op, _ []byte) abi.Response {
		for _, c := range []chan struct{}{entered, leave} {
			select {
			case c <- struct{}{}:
			case <-ctx.Done():
			}
		}
		return abi.Response{}
	}}
	greedy := loaded(t, wasm.Calls, Config{Name: "greedy", Process: Process{Budget: b}, API: apiOf(slow)})
	first, second := acquire(t, greedy), acquire(t, greedy)
	neighbour := acquire(t, loaded(t, wasm.Calls, Config{Name: "neighbour", Process: Process{Budget: b}, API: apiOf(nil)}))
	create := hostCall{"api_create", [4]uint32{requestAt, large, dstAt, 512}}
	done := make(chan []int64)
	go func() { done <- play(t, first, create) }()
	<-entered
	used(t, b, pages(12)+operation.RequestCopies*large)
	status, n := unpackResult(uint64(play(t, second, create)[0]))
	body, _ := memoryOf(second.in).Read(dstAt, n)
	if status != abi.StatusBudget || !strings.Contains(string(body), "no memory for api_create now") || !strings.Contains(string(body), "(memory_budget ") {
		t.Errorf("the next: %v %q", status, body)
	}
	for range 3 {
		if got := statusText(play(t, neighbour, hostCall{"api_create", [4]uint32{requestAt, operation.SmallMessage, dstAt, 512}})[0]); got != "OK 0" {
			t.Errorf("a neighbour's small request: %s", got)
		}
	}
	<-leave
	if got := statusText((<-done)[0]); got != "OK 0" {
		t.Errorf("the first: %s", got)
	}
	used(t, b, pages(12))
	if n := greedy.LimitStats()[abi.LimitMemoryBudget]; n != 1 {
		t.Errorf("counted %d refusals, want 1", n)
	}
}

// An answer counts as long as it is held: until the next operation, or the end of
// the call, however that ends. One that does not fit is BUDGET.
func TestAccount_HeldAnswers(t *testing.T) {
	inThisProcess(t) // a guest process holds the answers of its guests
	const long = 3 * operation.SmallMessage
	b := share.NewBudget(pages(4)+long, 0)
	size := long
	api := &scriptedAPI{f: func(context.Context, abi.Op, []byte) abi.Response { return abi.Response{Body: make([]byte, size)} }}
	m := loaded(t, wasm.Calls, Config{Process: Process{Budget: b}, API: apiOf(api), Observer: operation.Observer{Metric: func(int32, string, float64) abi.Status {
		used(t, b, pages(4)+long)
		return abi.StatusOK
	}}})
	g := acquire(t, m)
	get := hostCall{"api_get", [4]uint32{requestAt, 4, dstAt, 0}}
	report := hostCall{"metric", [4]uint32{0, requestAt, 1, 0}}
	poke(t, g, requestAt, []byte("a"))
	if got := play(t, g, get, report, get, report); statusText(got[0]) != "OK 49152" || statusText(got[2]) != "OK 49152" || got[1] != 0 || got[3] != 0 {
		t.Errorf("got %v", got)
	}
	used(t, b, pages(4))
	size = long + 1
	got := play(t, g, get, hostCall{"take", [4]uint32{dstAt, 0, 512}})
	status, n := unpackResult(uint64(got[0]))
	body, _ := memoryOf(g.in).Read(dstAt, n)
	if status != abi.StatusBudget || !strings.Contains(string(body), "the answer of api_get, which may have been carried out") {
		t.Errorf("an answer that does not fit: %v %q", status, body)
	}
	used(t, b, pages(4))
}

// Hammer: whatever becomes of operations and their calls, nothing stays counted.
func TestAccount_Hammer(t *testing.T) {
	api := &scriptedAPI{f: func(ctx context.Context, _ abi.Op, req []byte) abi.Response {
		switch rand.IntN(5) {
		case 0:
			panic("a bug of the host")
		case 1:
			<-ctx.Done()
			return abi.Response{Status: abi.StatusCancelled, Body: make([]byte, 2*len(req))}
		case 2:
			return abi.Response{Status: abi.StatusDenied, Body: make([]byte, len(req))}
		}
		return abi.Response{Body: make([]byte, 2*len(req))}
	}}
	b := share.NewBudget(pages(16)+600<<10, 0)
	m := loaded(t, wasm.Calls, Config{Concurrency: 3, Process: Process{Budget: b}, API: apiOf(api)})
	hurry(m, 20*time.Millisecond)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 40 {
				hammerOperations(t, m)
			}
		})
	}
	wg.Wait()
	if n := m.cfg.Process.Account.Used(); n != 0 {
		t.Errorf("%d bytes stay counted", n)
	}
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
	used(t, b, 0)
}

// hammerOperations makes one call with three operations.
func hammerOperations(t *testing.T, m *Module) {
	g, release, err := m.Acquire(context.Background())
	if err != nil {
		if _, late := errors.AsType[*abi.CallError](err); !late && !errors.Is(err, share.ErrMemoryBudget) { // the start of a fresh instance has 20 ms as well
			t.Error(err)
		}
		return
	}
	defer release()
	var calls []hostCall
	for range 3 {
		calls = append(calls, hostCall{"api_get", [4]uint32{requestAt, rand.Uint32N(120 << 10), dstAt, rand.Uint32N(200 << 10)}})
	}
	req := request(0)
	req.Object = sequence(calls)
	if _, err := g.Reconcile(context.Background(), req); err != nil {
		if _, ok := errors.AsType[*abi.CallError](err); !ok && !errors.Is(err, share.ErrMemoryBudget) {
			t.Error(err)
		}
	}
}
