// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// TestWaitingFor_NamesTheStageAndItsFigures: swap --wait reports what it waits for.
func TestWaitingFor_NamesTheStageAndItsFigures(t *testing.T) {
	for want, g := range map[string]admin.Revision{
		"waiting for the end of the canary: revision 2 serves 3 of 9 objects (30% of the objects, for 5m0s): 12 runs, 1 failed": {
			Number: 2, State: "canary", Canary: "canary: revision 2 serves 3 of 9 objects (30% of the objects, for 5m0s)", Runs: 12, Errors: 1,
		},
		"waiting for the end of the probation of revision 3: 0 runs, 0 failed; it begins with the first run": {
			Number: 3, State: "probation",
		},
	} {
		if got := waitingFor(&g); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
