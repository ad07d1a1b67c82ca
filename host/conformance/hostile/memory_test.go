// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/share"
)

// The memory that a guest has touched is the system's again when its instance is
// closed: with the garbage collector off, eight times all of it is as much as
// once.
func TestHostile_MemoryIsGivenBackAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: /proc is Linux's")
	}
	const size, runs = 64 << 20, 8
	a := attack{guest: "grow_touch", limits: share.Limits{Memory: size}, kind: abi.FailureMemory, message: "(memory 64Mi)", runs: 1}
	w := newWorld(t, &a, nil)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	check(t, &a, w.strike(t.Context(), &a, a.module(t)))
	before := resident(t)
	for range runs {
		check(t, &a, w.call(t.Context(), abi.ExportReconcile))
	}
	if grown := resident(t) - before; grown > size {
		t.Errorf("%d bytes are still there after %d runs that took %d each", grown, runs, size)
	}
	if err := w.module.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// resident is the memory of this process that is in the machine's, in bytes.
func resident(tb testing.TB) int {
	tb.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		tb.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		tb.Fatal(err)
	}
	return pages * os.Getpagesize()
}
