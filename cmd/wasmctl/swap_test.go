// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// TestWaitingFor_NamesTheStageAndItsFigures: swap --wait reports what it waits for.
func TestWaitingFor_NamesTheStageAndItsFigures(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for want, g := range map[string]admin.Revision{
		"waiting for the end of the canary on 30% of the objects, for 5m0s: revision 2, 40s so far, 12 runs, 1 failed": {
			Number: 2, State: "canary", Canary: "30% of the objects, for 5m0s", Since: now.Add(-40 * time.Second), Runs: 12, Errors: 1,
		},
		"waiting for the end of the probation: revision 3, 3s so far, 0 runs, 0 failed; it begins with the first run": {
			Number: 3, State: "probation", Since: now.Add(-3 * time.Second),
		},
	} {
		if got := waitingFor(&g, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
