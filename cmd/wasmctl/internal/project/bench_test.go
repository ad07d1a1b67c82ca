// SPDX-License-Identifier: Apache-2.0

//go:build unix

package project

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
)

// BenchmarkToolchain is what docs/toolchains.md has: a new project of each
// toolchain, its size, its load with and without compiled code, and a run that
// reads a field of an object of 4 KiB and declares a child and a status.
func BenchmarkToolchain(b *testing.B) {
	for _, t := range []Toolchain{Go, TinyGo, Rust} {
		b.Run(string(t), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "greeter")
			if _, err := (New{Dir: dir, Lang: t, SDK: "../../../.."}).Create(); err != nil {
				b.Fatal(err)
			}
			res, err := Build(b.Context(), dir, Options{})
			if errors.Is(err, ErrNoToolchain) {
				b.Skipf("SKIPPED: %v", err)
			}
			if err != nil {
				b.Fatal(err)
			}
			wasm, err := os.ReadFile(res.File)
			if err != nil {
				b.Fatal(err)
			}
			b.Run("load", func(b *testing.B) { benchmarkLoad(b, wasm, "") })
			b.Run("load compiled", func(b *testing.B) { benchmarkLoad(b, wasm, b.TempDir()) })
			b.Run("run", func(b *testing.B) { benchmarkRun(b, wasm) })
		})
	}
}

func benchmarkLoad(b *testing.B, wasm []byte, cache string) {
	load := func() {
		m, err := host.Load(b.Context(), wasm, host.Config{Code: load.Options{CacheDir: cache}, API: connect})
		if err != nil {
			b.Fatal(err)
		}
		if err := m.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if cache != "" {
		load() // fills it
	}
	begin := cpuTime(b)
	for b.Loop() {
		load()
	}
	b.ReportMetric(float64((cpuTime(b)-begin).Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(len(wasm))/1024, "KiB")
}

func benchmarkRun(b *testing.B, wasm []byte) {
	m, err := host.Load(b.Context(), wasm, host.Config{API: connect})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = m.Close(b.Context()) }()
	annotations := map[string]any{}
	for i := range 40 { // about 4 KiB with the rest
		annotations["example.dev/annotation-"+string(rune('a'+i%26))+string(rune('a'+i/26))] = "some text that is as long as an annotation often is, or so"
	}
	object, err := abi.AppendValue(nil, map[string]any{
		"apiVersion": "example.dev/v1", "kind": "Greeter",
		"metadata": map[string]any{"name": "hello", "namespace": "default", "uid": "1", "generation": int64(1), "annotations": annotations},
		"spec":     map[string]any{"text": "hello, world"},
	})
	if err != nil {
		b.Fatal(err)
	}
	guest, release, err := m.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	req := abi.Request{ID: "1", Attempt: 1, Key: abi.Key{Namespace: "default", Name: "hello"}, Object: object}
	begin := cpuTime(b)
	for b.Loop() {
		res, err := guest.Reconcile(b.Context(), &req)
		if err != nil || res.Declared == nil {
			b.Fatal(err, res)
		}
	}
	b.ReportMetric(float64((cpuTime(b)-begin).Nanoseconds())/1e3/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(len(object)), "object-bytes")
}

// cpuTime is the CPU time of the process: it means something on a machine
// that does other work too.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// noCluster answers nothing: a run that declares asks for nothing.
type noCluster struct{}

// Call implements operation.API.
func (noCluster) Call(context.Context, abi.Op, []byte) abi.Response {
	return abi.Response{Status: abi.StatusUnsupported}
}

func connect(*abi.Manifest) (operation.API, error) { return noCluster{}, nil }
