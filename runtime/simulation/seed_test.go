// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// seeds is the number of seeds.
var seeds int64 = 10_000

const (
	// shortSeeds is the number of seeds with -short.
	shortSeeds = 300
	// maxFailed is the number of failed seeds after which the test stops.
	maxFailed = 10
)

var firstSeed = flag.Int64("seed", -1, "play this seed alone; with WASMCTL_SIM_SEEDS, so many from this one on")

// TestMain removes apimachinery's global limit of one reported error per millisecond: it stores the real time of the
// process's start, which in a bubble is 26 years ahead, and would sleep until then. The garbage collector may run less
// often, because the simulations retain little memory.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// TestSeed runs one simulation per seed: seeds, or WASMCTL_SIM_SEEDS of them, fewer with -short. With -seed, it runs
// that one, or the given number starting from it. A failed seed prints how to run it alone.
func TestSeed(t *testing.T) {
	n := seeds
	if testing.Short() {
		n = shortSeeds
	}
	first := max(*firstSeed, 0)
	if *firstSeed >= 0 {
		n = 1
	}
	if text := os.Getenv("WASMCTL_SIM_SEEDS"); text != "" {
		var err error
		if n, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatalf("WASMCTL_SIM_SEEDS: %v", err)
		}
	}
	var next, failed atomic.Int64
	var wg sync.WaitGroup
	next.Store(first)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := next.Add(1) - 1; seed < first+n && failed.Load() < maxFailed; seed = next.Add(1) - 1 {
				// Not t.Parallel: all seeds would be in memory at once.
				if !t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) { play(t, uint64(seed)) }) {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
}

func play(t *testing.T, seed uint64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
}
