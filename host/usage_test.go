package host

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// Memory is that of the instances that there are, idle ones included,
// whether or not a budget bounds it.
func TestMemory_IsThatOfTheInstances(t *testing.T) {
	for _, b := range []*Budget{nil, NewBudget(pages(10))} {
		m := load(t, wasm.Modes, Config{Budget: b, Limits: Limits{Memory: pages(10)}}) // 1 page
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
	m := load(t, wasm.Modes, Config{OnCall: func(export string, took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		if took <= 0 {
			t.Errorf("%s took %v", export, took)
		}
		if call, ok := err.(*abi.CallError); ok { //nolint:errorlint // as it is
			export += " " + string(call.Kind)
		}
		calls = append(calls, export)
	}})
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
