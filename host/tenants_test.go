// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// A tenant whose guests take all memory and sleep takes no run from another tenant, and none
// of its idle instances.
func TestBudget_TenantThatTakesAllAndSleeps(t *testing.T) {
	inThisProcess(t) // it passes messages to guests
	code := chargedFor(t, wasm.Calls)
	b := share.NewBudget(pages(40)+code+chargedFor(t, wasm.Modes), 0)
	var asleep sync.WaitGroup
	sleeps := &scriptedAPI{f: func(ctx context.Context, _ abi.Op, _ []byte) abi.Response {
		asleep.Done()
		<-ctx.Done()
		return abi.Response{Status: abi.StatusCancelled}
	}}
	greedy := loaded(t, wasm.Calls, Config{Name: "greedy", Concurrency: 10, Process: Process{Budget: b, Tenant: "greedy"}, API: apiOf(sleeps)}) // 4 pages each
	var calls sync.WaitGroup
	defer calls.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	interrupted := make(chan error, 10)
	asleep.Add(10)
	for range 10 {
		l := acquire(t, greedy)
		calls.Go(func() {
			req := request(0)
			req.Object = sequence([]hostCall{{"api_get", [4]uint32{requestAt, 4, dstAt, 0}}})
			_, err := l.Reconcile(ctx, req)
			interrupted <- err
		})
	}
	asleep.Wait()
	used(t, b, pages(40)+code)
	small := loaded(t, wasm.Modes, Config{Name: "small", Process: Process{Budget: b, Tenant: "small"}, Limits: share.Limits{Memory: pages(9)}})
	for range 384 {
		hammerRunOf(t, small)
	}
	err := <-interrupted
	if ce := callError(t, err); ce.Kind != abi.FailureMemory || !errors.Is(err, share.ErrMemoryBudget) {
		t.Errorf("the largest guest of the greedy tenant: %v", err)
	}
	for _, u := range b.Usage() {
		if u.Tenant == "greedy" && u.Reclaimed != 1 || u.Tenant == "small" && (u.Reclaimed != 0 || u.Refused != 0) {
			t.Errorf("%+v", u)
		}
	}
	if a := share.NewAccount(b, "greedy", share.Operations); a.Take(pages(8)) == nil || len(small.last.Load().pool.idle) != 1 {
		t.Error("the greedy tenant took memory of the other one")
	}
}

// chargedFor returns what a tenant is charged for the code of a module.
func chargedFor(t *testing.T, module []byte) int64 {
	t.Helper()
	b := share.NewBudget(1<<30, 0)
	loaded(t, module, Config{Process: Process{Budget: b, Tenant: "t"}})
	return codeOf(b, "t")
}

// hammerRunOf makes one run, which must not fail.
func hammerRunOf(t *testing.T, m *Module) {
	t.Helper()
	g, release, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
		t.Error(err)
	}
}
