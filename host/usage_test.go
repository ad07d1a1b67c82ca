// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// Memory is that of the instances that there are, idle ones included,
// whether or not a budget bounds it.
func TestMemory_IsThatOfTheInstances(t *testing.T) {
	for _, b := range []*share.Budget{nil, share.NewBudget(pages(10), 0)} {
		m := loaded(t, wasm.Modes, Config{Process: Process{Budget: b}, Limits: share.Limits{Memory: pages(10)}}) // 1 page
		wants := func(what string, want int64) {
			t.Helper()
			if got := m.Memory(); got != want {
				t.Errorf("%s: %d, want %d", what, got, want)
			}
		}
		wants("idle", pages(1))
		g := acquire(t, m)
		if _, err := g.Reconcile(t.Context(), request(15)); err != nil { // grows until refused, and copes
			t.Fatal(err)
		}
		wants("grown", pages(10))
		g.release()
		wants("idle again", pages(10))
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		wants("closed", 0)
	}
}

// OnCall is notified of every call, also of those that fail.
func TestOnCall_IsToldOfEachCall(t *testing.T) {
	var mu sync.Mutex
	var calls []string
	m := loaded(t, wasm.Modes, Config{Observer: operation.Observer{OnCall: func(export string, took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		if took <= 0 {
			t.Errorf("%s took %v", export, took)
		}
		if call, ok := err.(*abi.CallError); ok { //nolint:errorlint // as it is
			export += " " + string(call.Kind)
		}
		calls = append(calls, export)
	}}})
	g := acquire(t, m)
	_, _ = g.Reconcile(t.Context(), request(0))
	_, _ = g.Reconcile(t.Context(), request(1)) // traps
	_, _ = g.ErrorPolicy(t.Context(), &abi.Failure{Key: request(0).Key})
	mu.Lock()
	defer mu.Unlock()
	var got []string
	for _, c := range calls {
		if c != abi.ExportInitialize && c != abi.ExportDescribe && c != abi.ExportConfigure {
			got = append(got, c)
		}
	}
	if diff := cmp.Diff([]string{"reconcile", "reconcile trap", "error_policy"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What a guest sleeps, waits for and has the host do is not its own computing. In a
// bubble nothing else takes time.
func TestCost_WaitsAreNotComputing(t *testing.T) {
	tests := []struct {
		name   string
		module []byte
		object []byte
		rate   int64
		idle   time.Duration // at least, and at most half as much again
	}{
		{"sleeps for an hour", wasm.WASI, []byte{6}, 0, time.Hour},
		{"waits for an answer for an hour", wasm.Work, work(10, 1).Object, 0, 0}, // which who serves it counts
		{"waits for its fuel rate", wasm.Work, work(10_000_000, 0).Object, 1_000_000, 50 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				api := &scriptedAPI{f: func(context.Context, abi.Op, []byte) abi.Response { <-time.After(time.Hour); return abi.Response{} }}
				m := loaded(t, tt.module, Config{Limits: share.Limits{Timeout: 3 * time.Hour, FuelRate: tt.rate}, API: apiOf(api)})
				g := acquire(t, m)
				var cost abi.Cost
				req := request(0)
				req.Object = tt.object
				if _, err := g.Reconcile(abi.WithRun(t.Context(), &abi.Run{Cost: &cost}), req); err != nil {
					t.Fatal(err)
				}
				if cost.Guest != 0 || cost.Idle < tt.idle || cost.Idle > tt.idle*3/2 {
					t.Errorf("%+v, want %v of waiting", cost, tt.idle)
				}
			})
		})
	}
}

// A call that belongs to a run adds to what that costs, and any other is told.
func TestCost_IsThatOfTheRunOrToldOtherwise(t *testing.T) {
	var outside int
	var computed time.Duration
	m := loaded(t, echo(t), Config{Observer: operation.Observer{OutsideRuns: func(guest time.Duration) { outside++; computed += guest }}})
	g := acquire(t, m)
	before := outside
	started := time.Now()
	var cost abi.Cost
	req := request(0)
	req.Object = echoObject([]byte{0x80}) // an empty result
	for range 100 {
		if _, err := g.Reconcile(abi.WithRun(t.Context(), &abi.Run{Cost: &cost}), req); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(started); outside != before || cost.Guest <= 0 || cost.Guest > took {
		t.Errorf("runs of %v cost %+v, and %d calls outside of them", took, cost, outside-before)
	}
	computed = 0
	if _, err := m.Map(t.Context(), event(echoObject([]byte{0x80}))); err != nil {
		t.Fatal(err)
	}
	if outside == before || computed <= 0 || cost.Result != 1 {
		t.Errorf("%d calls outside of runs took %v; runs cost %+v", outside-before, computed, cost)
	}
}
