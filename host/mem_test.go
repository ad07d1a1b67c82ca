// SPDX-License-Identifier: Apache-2.0

//go:build linux

package host

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// The budget counts what a guest has, page by page, and not the addresses that
// are reserved for it.
func TestMemory_BudgetCountsWhatMayBeTouched(t *testing.T) {
	b := share.NewBudget(pages(100), 0)
	m := loaded(t, wasm.Modes, Config{Process: Process{Budget: b}, Limits: share.Limits{Memory: pages(5)}}) // 1 page
	used(t, b, pages(1))
	g := acquire(t, m)
	if _, err := g.Reconcile(t.Context(), request(15)); err != nil { // grows until refused, and copes
		t.Fatal(err)
	}
	if got := g.in.Size(); got != pages(5) {
		t.Errorf("the guest has %s", share.SizeText(got))
	}
	used(t, b, pages(5))
	if got := m.shared.use.Memory.Load(); got != pages(5) {
		t.Errorf("the module counts %s", share.SizeText(got))
	}
}

// A process without address space for another instance says so and goes on: the
// same module with less memory works. It holds in a process of its own.
func TestMemory_NoAddressSpaceIsAnError(t *testing.T) {
	inThisProcess(t)
	const name = "WASMCTL_TEST_ADDRESS_SPACE"
	if os.Getenv(name) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestMemory_NoAddressSpaceIsAnError$")
		cmd.Env = append(os.Environ(), name+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %.2000s", err, out)
		}
		return
	}
	b := share.NewBudget(pages(1000), 0)
	small := Config{Process: Process{Budget: b}, Limits: share.Limits{Memory: pages(16)}}
	m := loaded(t, wasm.Modes, small)
	const most = 1 << 40
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: addresses(t) + 1<<30, Max: most}); err != nil {
		t.Skip("SKIPPED: the address space cannot be bounded: ", err)
	}
	_, err := Load(t.Context(), wasm.Modes, Config{Process: Process{Budget: b}, Limits: share.Limits{Memory: 4 << 30}})
	if !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(), "4294967296 bytes of address space cannot be reserved") {
		t.Errorf("got %v", err)
	}
	used(t, b, pages(1))
	if _, err := acquire(t, m).Reconcile(t.Context(), request(0)); err != nil {
		t.Errorf("who has memory: %v", err)
	}
	loaded(t, wasm.Modes, small)
}

// addresses is how much address space this process has, in bytes.
func addresses(tb testing.TB) uint64 {
	tb.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		tb.Fatal(err)
	}
	var n uint64
	for _, c := range strings.Fields(string(b))[0] {
		n = 10*n + uint64(c-'0')
	}
	return n * uint64(os.Getpagesize()) //nolint:gosec // a small number
}
