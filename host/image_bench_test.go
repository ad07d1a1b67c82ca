// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/internal/linear"
	"github.com/wasmctl/wasmctl/host/load"
)

// proportional is what the process has of the machine's memory, in bytes: of a page
// that several mappings share, each has its part.
func proportional(b *testing.B) int64 {
	b.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		b.Skip("SKIPPED: ", err)
	}
	m := regexp.MustCompile(`(?m)^Pss: +(\d+) kB`).FindSubmatch(text)
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n << 10
}

// withImages makes instances of a module by its image, or by its start code.
func withImages(b *testing.B, g *revision, images bool) {
	b.Helper()
	g.maker.ReleaseImage()
	if !images {
		g.maker.(*instance.LocalMaker).WithoutImage(g.settings.Load())
		return
	}
	for range 2 {
		in, err := g.newInstance(b.Context(), g.settings.Load())
		if err != nil {
			b.Fatal(err)
		}
		in.Close(b.Context())
	}
	if !g.maker.HasImage() {
		b.Skip("SKIPPED: the module has no image")
	}
}

// BenchmarkInstance is what an instance costs: the time until it is ready, and that of
// its first run, in which it gets an object that is no operator's; its part of the
// machine's memory when it is ready, and after that run.
func BenchmarkInstance(b *testing.B) {
	wasm := benchModule(b)
	linear.KeepFreed.Store(false) // as outside of tests
	b.Cleanup(func() { linear.KeepFreed.Store(true) })
	for name, images := range map[string]bool{"start code": false, "image": true} {
		b.Run(name, func(b *testing.B) {
			m := loaded(b, wasm, Config{API: apiOf(nil), Name: os.Getenv("WASMCTL_BENCH_NAME"), Code: load.Options{CacheDir: filepath.Join(os.TempDir(), "wasmctl-bench")}})
			g := m.last.Load()
			withImages(b, g, images)
			b.Run("start", func(b *testing.B) {
				from, ready := cpuTime(b), time.Duration(0)
				defer func() {
					b.ReportMetric(float64((cpuTime(b)-from).Microseconds())/float64(b.N), "cpu-us/op")
					b.ReportMetric(float64(ready.Nanoseconds())/1e3/float64(b.N), "ready-us/op") // without its end
				}()
				for b.Loop() {
					begin := time.Now()
					in, err := g.newInstance(b.Context(), g.settings.Load())
					if ready += time.Since(begin); err != nil {
						b.Fatal(err)
					}
					in.Close(b.Context())
				}
			})
			b.Run("memory", func(b *testing.B) { benchMemory(b, g) })
		})
	}
}

func benchMemory(b *testing.B, g *revision) {
	b.Helper()
	const n = 20
	for range b.N {
		before := proportional(b)
		all := make([]*lease, n)
		for i := range all {
			in, err := g.newInstance(b.Context(), g.settings.Load())
			if err != nil {
				b.Fatal(err)
			}
			all[i] = &lease{rev: g, in: in}
		}
		ready := proportional(b)
		for _, l := range all {
			_, _ = l.run(context.Background(), abi.ExportReconcile, request(0x80)) // an error is as good
		}
		ran := proportional(b)
		for _, l := range all {
			if l.in != nil {
				l.in.Close(context.Background())
			}
		}
		b.ReportMetric(float64(ready-before)/n/1024, "KiB/ready")
		b.ReportMetric(float64(ran-before)/n/1024, "KiB/ran")
	}
}
