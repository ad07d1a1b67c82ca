// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"
	"testing/synctest"

	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/internal/vm"
	"github.com/wasmctl/wasmctl/host/isolate/isolatetest"
)

// testIsolation is defaultIsolation if tests run with guest processes.
var testIsolation isolatetest.Isolation

// inGuest returns the guest of an instance, in this process or in a guest process.
func inGuest(in *instance.Instance) *instance.Local { return testIsolation.Guest(in) }

// memoryOf returns the memory of a guest in this process or in a guest process.
func memoryOf(in *instance.Instance) vm.Memory { return inGuest(in).Memory() }

// inBubble is synctest.Test. Connections are outside of bubbles.
func inBubble(t *testing.T, f func(*testing.T)) {
	if defaultIsolation != nil {
		t.Skip("SKIPPED: in virtual time connections do not work")
	}
	synctest.Test(t, f)
}

// inThisProcess skips a test of guests in this process: their clocks, cache of code, heap.
func inThisProcess(t *testing.T) {
	t.Helper()
	if defaultIsolation != nil {
		t.Skip("SKIPPED: holds for guests in this process")
	}
}
