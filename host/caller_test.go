// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// An instance that has run before in a context is interrupted by the end of that.
func TestCaller_EndInterruptsALaterRun(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Modes, Config{}))
	ctx, cancel := context.WithCancelCause(t.Context())
	for range 3 {
		if _, err := g.Reconcile(abi.WithRun(ctx, &abi.Run{}), request(11)); err != nil {
			t.Fatal(err)
		}
	}
	stop := errors.New("second signal")
	time.AfterFunc(20*time.Millisecond, func() { cancel(stop) })
	if _, err := g.Reconcile(abi.WithRun(ctx, &abi.Run{}), request(2)); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if g.in != nil {
		t.Error("the instance is used again")
	}
}

// The end of a context that an instance has run in before interrupts no run in another
// one, whenever it comes.
func TestHammer_CallerInterruptsItsOwnRunsOnly(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Modes, Config{}))
	var in *instance.Instance
	for i := range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := g.Reconcile(abi.WithRun(ctx, &abi.Run{}), request(0)); err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		if i == 0 {
			in = g.in
		}
		go cancel()
	}
	if g.in != in {
		t.Error("the instance was replaced")
	}
}

// What is kept of a context does not keep its run, nor anything else with the instance.
func TestCaller_KeepsNoRun(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Modes, Config{}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		keeps bool
	}{
		{"a run", abi.WithRun(ctx, &abi.Run{}), true},
		{"of a run", context.WithValue(abi.WithRun(ctx, &abi.Run{}), otherKey{}, nil), false},
		{"no run", ctx, false},
		{"a run without an end", abi.WithRun(context.WithoutCancel(ctx), &abi.Run{}), false},
	} {
		if _, err := g.Reconcile(tt.ctx, request(11)); err != nil {
			t.Fatal(err)
		}
		if kept := g.in.Registered(); kept != tt.keeps {
			t.Errorf("%s: kept: %v, want %v", tt.name, kept, tt.keeps)
		}
	}
	if _, err := g.Reconcile(abi.WithRun(ctx, &abi.Run{}), request(11)); err != nil {
		t.Fatal(err)
	}
	in := g.in
	if in.Close(ctx); in.Registered() {
		t.Error("a closed instance is registered")
	}
}

// otherKey is a key of contexts.
type otherKey struct{}
