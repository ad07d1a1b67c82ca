// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// TestControllerState_CauseThatCountsMostComesFirst: each cause is shown, and one that
// stops the controller takes precedence over those that do not.
func TestControllerState_CauseThatCountsMostComesFirst(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c := admin.Controller{Phase: admin.PhaseRunning}
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "ok"},
		{func() { c.HotLoops = 2 }, "ok"},
		{func() {
			c.HotObjects, c.Hot = 2, []admin.HotObject{{Object: "shop/spin", Cause: "its own writes trigger it"}}
		}, "2 objects in a hot loop: shop/spin: its own writes trigger it"},
		{func() { c.Watches = []admin.Watch{{Source: "secrets", Phase: "ready", Unmapped: 1}} }, "map fails"},
		{func() {
			c.Failing, c.LastFailure = 3, &admin.LastFailure{Object: "shop/trap", At: now.Add(-time.Second), Kind: "trap", Error: "wasm: unreachable\nat line 1"}
		}, "fails: shop/trap 1s ago: trap: wasm: unreachable"},
		{func() { c.Quarantined = 1 }, "1 object quarantined: shop/trap 1s ago: trap: wasm: unreachable"},
		{func() { c.LongestRun = &admin.LongestRun{Object: "shop/slow", Since: now.Add(-20 * time.Second)} }, "hangs: shop/slow has been running for 20s"},
		{func() { c.Watches[0].Phase, c.Watches[0].Message = "denied", "no rights" }, "watches not ready: denied: secrets: no rights"},
		{func() { c.Paused = true }, "paused"},
		{func() { c.Phase, c.Message = admin.PhaseWaiting, "widgets\nmore" }, "waiting: widgets"},
	} {
		step.change()
		if got := controllerState(&c, now); got != step.want {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
}
