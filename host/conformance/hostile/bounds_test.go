// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/host/internal/linear"
	"github.com/wasmctl/wasmctl/host/share"
)

// sweepTimeout is that of attacks that only differ in the function of WASI.
const sweepTimeout = 50 * time.Millisecond

// hostMemory is the memory that this process may use for an attack in addition to the memory of its
// instance: stacks, and what the host reads, decodes and retains.
const hostMemory = 64 << 20

// TestHostile_EndsInTimeAndMemory carries out each attack that a timeout is to end,
// and each function of WASI in a loop, one after the other: it ends within one and
// a half times its timeout and 50 ms, and never takes more memory than it may, not
// only once garbage is collected.
func TestHostile_EndsInTimeAndMemory(t *testing.T) {
	needsLinux(t)
	linear.KeepFreed.Store(false) // as outside of tests
	defer linear.KeepFreed.Store(true)
	// The garbage that the collector leaves would be as much as this process has
	// besides; the process suite measures that.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	var list []attack
	for _, a := range attacks() {
		if a.kind != "" {
			list = append(list, a)
		}
	}
	loops := wasiLoops(t)
	for _, name := range slices.Sorted(maps.Keys(loops)) {
		list = append(list, attack{guest: name, bytes: loops[name].bytes, limits: share.Limits{Timeout: sweepTimeout}})
	}
	for _, a := range list {
		t.Run(a.name(), func(t *testing.T) { bounded(t, &a) })
	}
}

// bounded carries out one attack, and looks at the clock and at memory.
func bounded(t *testing.T, a *attack) {
	w := newWorld(t, a, nil)
	wasm := a.module(t)
	before := forgetAll(t)
	var watch *stopwatch
	err := w.load(t.Context(), wasm)
	switch {
	case a.on == onLoad:
	case err != nil:
		t.Fatal(err)
	default:
		defer func() { _ = w.module.Close(context.Background()) }()
		before = forgetAll(t) // what the module itself takes is not the call's
		watch = startWatch(t, os.Getpid())
		for range max(1, a.runs) {
			err = w.call(t.Context(), a.on)
		}
	}
	_, peak := memoryOf(t, os.Getpid())
	if most := before + w.cfg.Limits.Memory + hostMemory; peak > most {
		t.Errorf("the process took %d MiB more, want %d: %.200v", (peak-before)>>20, (most-before)>>20, err)
	}
	if watch == nil || a.limits.Timeout == 0 {
		return
	}
	if late := watch.late(t, a.limits.Timeout*3/2+50*time.Millisecond); late != "" {
		t.Errorf("%s: %.200v", late, err)
	}
}

// forgetAll collects garbage, and returns the remaining size of the process.
func forgetAll(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	now, _ := memoryOf(t, os.Getpid())
	forgetPeak(os.Getpid())
	return now
}
