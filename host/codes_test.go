// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
)

// TestCodes_OneForAllModulesOfTheSameBytes: modules that share code run beside each
// other, each with its own instances; it is closed with the last, and what cannot be
// compiled is refused to each.
func TestCodes_OneForAllModulesOfTheSameBytes(t *testing.T) {
	inThisProcess(t)
	codes := &Codes{}
	const n = 8
	modules := make([]*Module, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			m, err := Load(t.Context(), large(i%2), Config{Process: Process{Codes: codes}})
			if err != nil {
				t.Error(err)
				return
			}
			modules[i] = m
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	if codes.codes.Len() != 2 {
		t.Fatalf("%d codes, want 2", codes.codes.Len())
	}
	for i, m := range modules {
		if m.last.Load().program.Machine() != modules[i%2].last.Load().program.Machine() {
			t.Errorf("module %d has its own code", i)
		}
	}
	for i, m := range modules {
		guest, release, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := guest.Reconcile(t.Context(), &abi.Request{ID: "1", Key: abi.Key{Name: "x"}}); err != nil {
			t.Errorf("module %d: %v", i, err)
		}
		release()
		if err := m.Close(t.Context()); err != nil { // those that are left go on
			t.Fatal(err)
		}
	}
	if codes.codes.Len() != 0 {
		t.Errorf("%d codes are left", codes.codes.Len())
	}
}

// BenchmarkCodes is the memory of one more module with the same bytes, alone and with
// shared code.
func BenchmarkCodes(b *testing.B) {
	for name, codes := range map[string]*Codes{"alone": nil, "shared": {}} {
		b.Run(name, func(b *testing.B) {
			wasm := large(1)
			var list []*Module
			more := func() {
				m, err := Load(b.Context(), wasm, Config{Process: Process{Codes: codes}})
				if err != nil {
					b.Fatal(err)
				}
				list = append(list, m)
			}
			more()
			heap := func() uint64 {
				runtime.GC()
				runtime.GC()
				var s runtime.MemStats
				runtime.ReadMemStats(&s)
				return s.HeapAlloc
			}
			before := heap()
			for b.Loop() {
				more()
			}
			b.ReportMetric(float64(heap()-before)/float64(b.N), "heapB/module")
			for _, m := range list {
				if err := m.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCodes_Machine is what one more controller of the same module takes of the
// machine's memory, its first instance included.
func BenchmarkCodes_Machine(b *testing.B) {
	wasm := benchModule(b)
	for name, codes := range map[string]*Codes{"alone": nil, "shared": {}} {
		b.Run(name, func(b *testing.B) {
			const more = 10
			cfg := Config{Code: load.Options{CacheDir: filepath.Join(os.TempDir(), "wasmctl-bench")}, Process: Process{Codes: codes}, API: apiOf(nil)}
			loaded(b, wasm, cfg)
			for range b.N {
				before := proportional(b)
				list := make([]*Module, more)
				for i := range list {
					var err error
					if list[i], err = Load(b.Context(), wasm, cfg); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(proportional(b)-before)/more/1024, "KiB/module")
				for _, m := range list {
					if err := m.Close(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
