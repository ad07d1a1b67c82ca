// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"testing"

	"github.com/wasmctl/wasmctl/host/isolate/isolatetest"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// A guest process counts in the budget for as long as it has the code of a module. Without room
// for it, the module is refused.
func TestIsolated_ProcessCountsInTheBudget(t *testing.T) {
	const overhead = 8 << 20
	budget := share.NewBudget(2*overhead, 0)
	cfg := Config{Isolation: &isolatetest.Isolation{Overhead: overhead}, Process: Process{Budget: budget}}
	m, err := Load(t.Context(), wasm.Empty, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := budget.Stats().Used; got != overhead+m.Memory() {
		t.Errorf("%d bytes are charged, want %d and %d", got, overhead, m.Memory())
	}
	if err := m.Close(context.Background()); err != nil {
		t.Error(err)
	}
	used(t, budget, 0)
	cfg.Process.Budget = share.NewBudget(overhead-1, 0)
	if _, err := Load(t.Context(), wasm.Empty, cfg); !errors.Is(err, share.ErrMemoryBudget) {
		t.Errorf("without room: %v", err)
	}
	used(t, cfg.Process.Budget, 0)
}
