// SPDX-License-Identifier: Apache-2.0

package tenants_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/test/e2e/internal/e2e"
)

// TestTenants_AnAttackReachesNoOther: while a tenant attacks, no run of another tenant fails, changes of its
// Reconcilers take effect, and those of the attacker are suspended and deleted. make fairness measures how fast.
func TestTenants_AnAttackReachesNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, a := range attacks(t, "silence", "holders", "spinners", "writes") {
		w.under(a, 10, 0)
	}
	w.process.Signal(syscall.SIGTERM)
	w.process.WantExit(e2e.ExitOK)
}

// row is the result of one attack.
type row struct {
	quiet, attacked  seen
	suspend, removed time.Duration // the longest
	rss              int64         // the peak
	files            int           // open ones, at the end
}

// under measures the victim without an attack and under one, each for the window at least.
func (w *world) under(a attack, n int, window time.Duration) (r row) {
	w.Helper()
	failed := w.failures()
	ctx, cancel := context.WithTimeout(w.Context(), window)
	r.quiet = w.observe(ctx)
	cancel()
	w.forgetPeak()
	ctx, cancel = context.WithCancel(w.Context())
	var wg sync.WaitGroup
	wg.Go(func() { r.attacked = w.observe(ctx) })
	stop := w.start(a, n)
	e2e.Pause(w.Context(), window)
	for i := range min(3, n/2) {
		r.suspend = max(r.suspend, w.suspend(a.reconciler(2*i)))
		r.removed = max(r.removed, w.remove(a.reconciler(2*i+1)))
	}
	cancel()
	wg.Wait()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.process.Cmd.Process.Pid))
	w.attacker.must(err)
	_, r.rss = w.memory()
	r.files = len(files)
	if more := w.failures() - failed; more > 0 {
		w.Errorf("%s: %d runs of the victim have failed", a.name, more)
	}
	if r.rss > container && !testing.Short() { // the race detector, which needs more, runs with -short
		w.Errorf("%s: the process has %d MiB", a.name, r.rss>>20)
	}
	stop()
	w.end(a)
	return r
}

// quantile returns a quantile.
func quantile(of []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Round(time.Millisecond)
}

// TestFairness_Limits measures each attack with each number of Reconcilers in WASMCTL_FAIRNESS. The machine must be
// idle otherwise.
func TestFairness_Limits(t *testing.T) {
	counts := strings.Fields(os.Getenv("WASMCTL_FAIRNESS"))
	if len(counts) == 0 {
		t.Skip("SKIPPED: it measures time: make fairness")
	}
	const window = 15 * time.Second
	w := newWorld(t)
	t.Logf("%-13s %4s | run: quiet p50, p99, attacked p50, p99 | change: the same | suspended and deleted after, RSS, files", "attack", "n")
	for _, count := range counts {
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range attacks(t, strings.Fields(os.Getenv("WASMCTL_ATTACKS"))...) {
			r := w.under(a, n, window)
			p99, quiet, change := quantile(r.attacked.runs, 0.99), quantile(r.quiet.runs, 0.99), quantile(r.attacked.changes, 0.99)
			t.Logf("%-13s %4d | %6v %6v %6v %6v | %6v %6v %6v %6v | %6v %6v %4d MiB %5d", a.name, n,
				quantile(r.quiet.runs, 0.5), quiet, quantile(r.attacked.runs, 0.5), p99,
				quantile(r.quiet.changes, 0.5), quantile(r.quiet.changes, 0.99), quantile(r.attacked.changes, 0.5), change,
				r.suspend.Round(time.Millisecond), r.removed.Round(time.Millisecond), r.rss>>20, r.files)
			const limit = 2 * time.Second
			if p99 > 3*quiet || change > limit || r.suspend > limit || r.removed > limit {
				t.Errorf("%s: above a limit: a run 3 times as long, or %v", a.name, limit)
			}
		}
	}
	w.process.Signal(syscall.SIGTERM)
	w.process.WantExit(e2e.ExitOK)
}

// TestFairness_Soak runs all attacks at once, each of them again and again, for WASMCTL_FAIRNESS_MINUTES. The memory
// of the second half is that of the first one.
func TestFairness_Soak(t *testing.T) {
	minutes, _ := strconv.Atoi(os.Getenv("WASMCTL_FAIRNESS_MINUTES"))
	if minutes == 0 {
		t.Skip("SKIPPED: it takes an hour: make fairness-soak")
	}
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(minutes)*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for _, a := range attacks(t) {
		wg.Go(func() {
			for ctx.Err() == nil {
				e2e.Pause(ctx, rand.N(time.Minute))
				stop := w.start(a, 1+rand.IntN(20))
				e2e.Pause(ctx, rand.N(time.Minute))
				stop()
				w.end(a)
			}
		})
	}
	var peaks []int64
	for minute := 1; ctx.Err() == nil; minute++ {
		w.forgetPeak()
		window, done := context.WithTimeout(ctx, time.Minute)
		s := w.observe(window)
		done()
		_, peak := w.memory()
		peaks = append(peaks, peak)
		t.Logf("minute %2d: RSS %4d MiB, run p50 %v, p99 %v, change p50 %v, p99 %v, %d failures", minute, peak>>20,
			quantile(s.runs, 0.5), quantile(s.runs, 0.99), quantile(s.changes, 0.5), quantile(s.changes, 0.99), w.failures())
	}
	wg.Wait()
	first, second := slices.Max(peaks[:(len(peaks)+1)/2]), slices.Max(peaks[len(peaks)/2:])
	if second > first+first/4 || second > container {
		t.Errorf("the memory grows: %d MiB in the first half, %d MiB in the second one", first>>20, second>>20)
	}
	if n := w.failures(); n > 0 {
		t.Errorf("%d runs of the victim have failed", n)
	}
	w.process.Signal(syscall.SIGTERM)
	w.process.WantExit(e2e.ExitOK)
}
