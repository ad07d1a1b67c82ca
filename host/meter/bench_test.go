// SPDX-License-Identifier: Apache-2.0

//go:build linux

package meter_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/tetratelabs/wazero"

	"github.com/wasmctl/wasmctl/host/meter"
)

// goGuest builds the guest in testdata/goguest.
func goGuest(tb testing.TB) []byte {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "guest.wasm")
	cmd := exec.CommandContext(tb.Context(), "go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, ".")
	cmd.Dir = filepath.Join("testdata", "goguest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build: %v\n%s", err, out)
	}
	return read(tb, file)
}

// BenchmarkOverhead runs the same guests unmetered, metered and with wazero's
// own way to stop a guest, one after the other, and reports the ratios of the
// fastest rounds, by the clock of the thread: what else the machine does shows
// least there.
func BenchmarkOverhead(b *testing.B) {
	loops, rust, golang := read(b, "testdata/loops.wasm"), rustGuest(b), goGuest(b)
	for _, c := range []struct {
		name, export string
		wasm         []byte
		n            uint64
	}{
		{"tight loop", "tight", loops, 10_000_000},
		{"memory loop", "memory_loop", loops, 5_000_000},
		{"sieve", "sieve", loops, 1_000_000},
		{"recursion", "fib", loops, 27},
		{"Rust msgpack", "msgpack", rust, 100},
		{"Go json", "json", golang, 10},
		{"Go sort", "sort", golang, 30_000},
		{"Go loop", "loop", golang, 1_000_000},
	} {
		if c.wasm == nil {
			continue
		}
		b.Run(c.name, func(b *testing.B) { overhead(b, c.wasm, c.export, c.n) })
	}
}

func overhead(b *testing.B, wasm []byte, export string, n uint64) {
	metered := startMetered(b, wasm, meter.Config{}, wazero.NewRuntimeConfig())
	guests := []*guest{
		start(b, wasm, wazero.NewRuntimeConfig()),
		metered,
		start(b, wasm, wazero.NewRuntimeConfig().WithCloseOnContextDone(true)),
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	best := [3]time.Duration{time.Hour, time.Hour, time.Hour}
	var fuel int64
	for i := 0; b.Loop(); i++ {
		for j, g := range guests {
			if j == 2 && i%8 > 0 {
				continue // it takes many times as long as the others
			}
			runtime.GC() // and not while a guest runs
			before := metered.fuelBudget.spent()
			from := threadTime(b)
			if _, err := g.call(b.Context(), export, n); err != nil {
				b.Fatal(err)
			}
			best[j] = min(best[j], threadTime(b)-from)
			if g == metered {
				fuel = metered.fuelBudget.spent() - before
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(best[0])/1e6, "ms-plain")
	b.ReportMetric(float64(best[1])/float64(best[0]), "x-metered")
	b.ReportMetric(float64(best[2])/float64(best[0]), "x-close")
	b.ReportMetric(float64(fuel)/best[1].Seconds()/1000, "fuel/ms")
}

// threadTime is how long this thread has run.
func threadTime(tb testing.TB) time.Duration {
	tb.Helper()
	const threadClock = 3 // CLOCK_THREAD_CPUTIME_ID; getrusage counts in ticks
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadClock, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		tb.Fatal(errno)
	}
	return time.Duration(ts.Nano())
}

// BenchmarkRewrite: the time and memory of Rewrite, per byte of the module.
func BenchmarkRewrite(b *testing.B) {
	for _, c := range []struct {
		name string
		wasm []byte
	}{{"Go", goGuest(b)}, {"Rust", rustGuest(b)}} {
		if c.wasm == nil {
			continue
		}
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.wasm)))
			b.ReportAllocs()
			var out *meter.Output
			best := time.Hour
			for b.Loop() {
				from := time.Now()
				out = rewrite(b, c.wasm, meter.Config{})
				best = min(best, time.Since(from))
			}
			b.ReportMetric(float64(len(out.Wasm))/float64(len(c.wasm)), "x-size")
			b.ReportMetric(best.Seconds()*1e3/float64(len(c.wasm))*1e6, "ms/MB")
		})
	}
}

// BenchmarkCompile: what metering adds to compiling.
func BenchmarkCompile(b *testing.B) {
	for _, c := range []struct {
		name string
		wasm []byte
	}{{"Go", goGuest(b)}, {"Rust", rustGuest(b)}} {
		if c.wasm == nil {
			continue
		}
		b.Run(c.name, func(b *testing.B) {
			forms := [][]byte{c.wasm, rewrite(b, c.wasm, meter.Config{}).Wasm}
			best := [2]time.Duration{time.Hour, time.Hour}
			for i := 0; b.Loop(); i++ {
				for j, wasm := range forms {
					r := wazero.NewRuntime(b.Context())
					from := time.Now()
					if _, err := r.CompileModule(b.Context(), wasm); err != nil {
						b.Fatal(err)
					}
					best[j] = min(best[j], time.Since(from))
					closeRuntime(b, r)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(best[0])/1e6, "ms-plain")
			b.ReportMetric(float64(best[1])/float64(best[0]), "x-metered")
		})
	}
}
