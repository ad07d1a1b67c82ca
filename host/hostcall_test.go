// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// floods are the kinds of work that the guest wasm.Floods asks the host for.
var floods = map[byte]string{
	1: "random_get", 2: "log", 3: "poll_oneoff", 4: "fd_read", 5: "fd_write", 6: "clock_time_get",
	7: "args_get", 8: "config_get", 9: "path_open", 10: "unknown operation", 11: "fd_write of nothing",
}

// A guest that only asks the host for work ends with its time, and its slices have ended
// all along, whatever the host function is.
func TestHostCall_EndsWithItsTime(t *testing.T) {
	for mode, name := range floods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const timeout = 100 * time.Millisecond
			m := loaded(t, wasm.Floods, Config{Process: Process{CPUs: share.NewCPUScheduler(1)}})
			g := acquire(t, m)
			hurry(m, timeout)
			in := inGuest(g.in)
			start := time.Now()
			_, err := g.Reconcile(t.Context(), request(mode))
			took := time.Since(start)
			if ce := callError(t, err); ce.Kind != abi.FailureTimeout {
				t.Errorf("got %v, want a timeout", err)
			}
			if took > time.Minute { // the suite of attacks is exact
				t.Errorf("took %v", took)
			}
			if slices := in.Slices(); defaultIsolation == nil && slices < share.FreeSlices {
				t.Errorf("%d slices in %v", slices, took)
			}
		})
	}
}
