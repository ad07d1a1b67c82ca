// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// callsOf is how many calls the instance that serves the next run has made with
// it, as the guest wasm.Modes counts them.
func callsOf(t *testing.T, m *Module, mode byte) time.Duration {
	t.Helper()
	g, release, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	res, err := g.Reconcile(t.Context(), request(mode))
	if err != nil {
		t.Fatal(err)
	}
	return res.Action.After / time.Millisecond
}

func TestRecycle_AfterSoManyCalls(t *testing.T) {
	m := loaded(t, wasm.Modes, Config{})
	for i, want := range []time.Duration{1, 2, 3, 1, 2, 3, 1} {
		if want == 3 { // its last call
			g := acquire(t, m)
			g.in.Entered = share.InstanceCalls - 1
			g.release()
		}
		if got := callsOf(t, m, 11); got != want {
			t.Errorf("run %d: call %d of its instance, want %d", i+1, got, want)
		}
	}
	if got := m.Recycled()["instance_calls"]; got != 2 || m.LimitStats()["instance_calls"] != 2 {
		t.Errorf("replaced %d, counted %v", got, m.LimitStats())
	}
}

// An instance that holds more memory than the high-water mark is replaced, but
// not before it has made some calls: what a module needs each time is its own.
func TestRecycle_BeyondHighWater(t *testing.T) {
	m := loaded(t, wasm.Modes, Config{Limits: share.Limits{Memory: 8 * share.PageSize}})
	callsOf(t, m, 15) // grows to the limit
	for i := range 15 {
		if got, want := callsOf(t, m, 11), time.Duration(i+2); got != want {
			t.Fatalf("call %d of its instance, want %d", got, want)
		}
	}
	if got := callsOf(t, m, 11); got != 1 || m.Recycled()["high_water"] != 1 {
		t.Errorf("call %d of its instance, want a fresh one; replaced %v", got, m.Recycled())
	}
	for range 32 { // one that stays small lives on
		callsOf(t, m, 11)
	}
	if m.Recycled()["high_water"] != 1 {
		t.Errorf("replaced %v", m.Recycled())
	}
}

func TestHealthy_UntilInstancesCannotBeMade(t *testing.T) {
	b := share.NewBudget(pages(2), 0)
	other := loaded(t, wasm.Empty, Config{Process: Process{Budget: b}})
	m := loaded(t, wasm.Empty, Config{Name: "m", Process: Process{Budget: b}})
	g, release, err := other.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = g
	acquire(t, m)
	try := func() error {
		_, release, err := m.Acquire(t.Context())
		if err == nil {
			release()
		}
		return err
	}
	for i := range unhealthyAfter {
		if err := m.Healthy(); err != nil {
			t.Errorf("after %d: %v", i, err)
		}
		if err := try(); err == nil {
			t.Fatal("there was memory")
		}
	}
	if err := m.Healthy(); !errors.Is(err, share.ErrMemoryBudget) {
		t.Errorf("after %d: %v", unhealthyAfter, err)
	}
	if err := other.Healthy(); err != nil {
		t.Errorf("the other module: %v", err)
	}
	release()
	if err := other.Close(t.Context()); err != nil { // gives its memory back
		t.Fatal(err)
	}
	if err := try(); err != nil || m.Healthy() != nil {
		t.Errorf("with memory again: %v, %v", err, m.Healthy())
	}
}

// Settings that are refused, again and again, say nothing of the module.
func TestHealthy_RefusedSettingsAreNoFailure(t *testing.T) {
	m := loaded(t, wasm.Configure, Config{Settings: mode("1")})
	for range unhealthyAfter {
		if err := m.Configure(t.Context(), mode("r")); !errors.Is(err, operation.ErrRefused) {
			t.Fatal(err)
		}
	}
	if err := m.Healthy(); err != nil {
		t.Error(err)
	}
}

// A run that is given up while it waits for its instance says nothing of the
// module.
func TestHealthy_GivenUpIsNoFailure(t *testing.T) {
	var h health
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range unhealthyAfter {
		h.note(ctx, context.Canceled)
	}
	if h.failed != 0 {
		t.Errorf("%d failures", h.failed)
	}
}
