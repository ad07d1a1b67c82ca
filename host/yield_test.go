// SPDX-License-Identifier: Apache-2.0

package host

import (
	"runtime"
	"sync"
	"testing"

	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// A guest that spins on the only CPU lets others run with each slice,
// although its module says that CPUs are free.
func TestYield_OthersRunBesideAGuestThatSpins(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, cpuScheduler := range []*share.CPUScheduler{nil, share.NewCPUScheduler(1), share.NewCPUScheduler(4)} {
		g := acquire(t, loaded(t, wasm.Work, Config{Process: Process{CPUs: cpuScheduler, slice: 50_000}}))
		ran := 0
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for ; ; ran++ {
				select {
				case <-stop:
					return
				default:
					runtime.Gosched()
				}
			}
		})
		if _, err := g.Reconcile(t.Context(), work(5_000_000, 0)); err != nil {
			t.Error(err)
		}
		close(stop)
		wg.Wait()
		if ran < 20 {
			t.Errorf("another goroutine ran %d times beside a hundred slices", ran)
		}
	}
}
