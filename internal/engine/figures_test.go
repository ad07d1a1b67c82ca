// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/queue"
)

// TestUnmapped_AnObjectCountsOnce: several watches of one kind, for slots or namespaces,
// share one hook.
func TestUnmapped_AnObjectCountsOnce(t *testing.T) {
	pods, secrets := &queue.HookState{Failing: 2}, &queue.HookState{Failing: 1}
	list := []controller.WatchState{{Hook: pods}, {Hook: pods}, {}, {Hook: secrets}, {Hook: pods}, {}}
	if got := unmapped(list); got != 3 {
		t.Errorf("%d, want 3", got)
	}
}
