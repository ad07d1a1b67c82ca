// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// growing are the numbers of small ConfigMaps of one controller. GROWTH_MOST skips those above it.
var growing = []int{1_000, 10_000, 100_000, 200_000, 300_000}

const (
	growthRounds = 3       // the lowest one counts: other load only ever adds time
	growthRuns   = 100_000 // number of changes at each size, at least one per object
)

// growth is the cost of a process at one size.
type growth struct {
	sync time.Duration // CPU time from the start until all objects have had a run
	run  time.Duration // CPU time of a later run
	heap float64       // bytes, after a collection
}

// BenchmarkGrowth_Objects reports the cost of one more object: CPU time until its first run has ended, and heap; and
// the CPU time of a later run that changes nothing. The first two are the difference from the smallest size, divided by
// the number of additional objects.
func BenchmarkGrowth_Objects(b *testing.B) {
	onlyNamed(b, "Growth")
	cluster := devclustertest.Own(b)
	ns := populate(b, cluster, configMaps, growing[0], smallConfigMap)
	c := module(b, "Rust", ".rust.wasm")
	for b.Loop() {
		before, first := growing[0], growth{}
		for _, n := range growing {
			if most, _ := strconv.Atoi(os.Getenv("GROWTH_MOST")); most > 0 && n > most {
				fmt.Fprintf(os.Stderr, "SKIPPED: %d objects: GROWTH_MOST is %d\n", n, most)
				continue
			}
			create(b, cluster, configMaps, ns, before, n, smallConfigMap)
			now := c.grown(b, job{kubeconfig: cluster.Kubeconfig(), namespace: ns, resource: configMaps.Resource, seldom: true}, n)
			b.ReportMetric(float64(now.run.Nanoseconds())/1000, fmt.Sprintf("µs/run-of-%d", n))
			if more := float64(n - growing[0]); more == 0 {
				first = now
			} else {
				b.ReportMetric(float64((now.sync-first.sync).Nanoseconds())/1000/more, fmt.Sprintf("µs/object-of-%d", n))
				b.ReportMetric((now.heap-first.heap)/more, fmt.Sprintf("heap-B/object-of-%d", n))
			}
			b.Logf("%7d objects: start %.2f s of CPU, %.1f µs for a run, heap %.1f MB", n, now.sync.Seconds(), float64(now.run.Nanoseconds())/1000, now.heap/1e6)
			before = n
		}
		b.ReportMetric(0, "ns/op") // meaningless: it is for all sizes
	}
}

// grown measures a controller with n objects.
func (c contender) grown(b *testing.B, j job, n int) growth {
	b.Helper()
	least := growth{math.MaxInt64, math.MaxInt64, math.MaxFloat64}
	for range growthRounds {
		o := contender{c.name, func(j job, metrics string) *exec.Cmd {
			cmd := c.command(j, metrics)
			cmd.Args = append(cmd.Args, "--pprof")
			return cmd
		}}.observe(b, j)
		s := o.awaitReconciles(b, n)
		synced := onCPU(b, o.cmd.Process.Pid)
		runs := 0
		for ; runs < growthRuns; runs += n {
			signal(b, o.cmd, syscall.SIGUSR1)
			s = o.awaitReconciles(b, s.reconciled+n)
		}
		run := (onCPU(b, o.cmd.Process.Pid) - synced) / time.Duration(runs)
		heap := o.liveHeap(b)
		o.stop(b)
		least = growth{min(least.sync, synced), min(least.run, run), min(least.heap, heap)}
	}
	return least
}

// onCPU returns the CPU time of a process, more precisely than cpuTime.
func onCPU(b *testing.B, pid int) (sum time.Duration) {
	b.Helper()
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is valid
	for _, path := range paths {
		var ns int64
		text, err := os.ReadFile(path)
		if err == nil {
			_, err = fmt.Sscan(string(text), &ns)
		}
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// liveHeap returns the heap of a wasmctl process with --pprof after a garbage collection, in bytes.
func (p *observed) liveHeap(b *testing.B) (bytes float64) {
	b.Helper()
	resp, err := http.Get(strings.TrimSuffix(p.metrics, "metrics") + "debug/pprof/heap?gc=1&debug=1") //nolint:noctx // it is ours, and answers at once
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "# HeapAlloc = %f", &bytes); n == 1 {
			return bytes
		}
	}
	b.Fatal("the profile has no HeapAlloc")
	return 0
}
