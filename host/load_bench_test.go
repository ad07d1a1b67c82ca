// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/host/load"
)

// cpuTime is what the process has used of the CPUs.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchModule is the module that a benchmark is about: what WASMCTL_BENCH_MODULE
// names, or else an example.
func benchModule(b *testing.B) []byte {
	b.Helper()
	path := os.Getenv("WASMCTL_BENCH_MODULE")
	if path == "" {
		return goModule(b)
	}
	wasm, err := os.ReadFile(path) //nolint:gosec // who runs the benchmark names it
	if err != nil {
		b.Fatal(err)
	}
	return wasm
}

// BenchmarkLoad_Compiled is loading a module that is compiled for it, by the CPUs that
// GOMAXPROCS allows.
func BenchmarkLoad_Compiled(b *testing.B) {
	benchmarkLoad(b, func() Config { return Config{Code: load.Options{CacheDir: b.TempDir(), CacheKey: []byte("key")}} })
}

// BenchmarkLoad_Cached is loading a module whose compiled code is in the cache, its
// first instance included.
func BenchmarkLoad_Cached(b *testing.B) {
	cfg := Config{Code: load.Options{CacheDir: b.TempDir(), CacheKey: []byte("key")}}
	m, err := Load(b.Context(), benchModule(b), cfg)
	if err == nil {
		err = m.Close(context.Background())
	}
	if err != nil {
		b.Fatal(err)
	}
	benchmarkLoad(b, func() Config { return cfg })
}

func benchmarkLoad(b *testing.B, cfg func() Config) {
	wasm := benchModule(b)
	var cpu time.Duration
	b.ResetTimer()
	b.StopTimer()
	for range b.N {
		cfg := cfg()
		b.StartTimer()
		from := cpuTime(b)
		m, err := Load(b.Context(), wasm, cfg)
		cpu += cpuTime(b) - from
		b.StopTimer()
		if err == nil {
			err = m.Close(context.Background())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
}
