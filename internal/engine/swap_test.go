// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/humanize"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// TestSwap_NothingIsLostDoubledOrListed: while objects change all the time, the module is
// swapped repeatedly, every fifth time for a bad one, each bad in a different way. Each bad
// module is refused or rolled back automatically. The last state of each object is
// reconciled; no object runs twice at once or on an older state (rules 1, 2 and 12);
// nothing is listed or watched again (rule 15). WASMCTL_SWAPS=100 is the long form, with
// 10,000 events.
func TestSwap_NothingIsLostDoubledOrListed(t *testing.T) {
	swaps, objects := 25, 50
	if s := os.Getenv("WASMCTL_SWAPS"); s != "" {
		swaps, _ = strconv.Atoi(s)
	}
	w := newSwapping(t, enginetest.Worse(enginetest.Good, 0), swapOptions())
	for i := range objects {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Until(t, "all objects are reconciled once", func() bool { return w.observer.behind() == 0 })
	lists, watches := w.sent.lists.Load(), w.sent.watches.Load()
	if lists != 1 {
		t.Errorf("%d LISTs for one watch", lists)
	}
	events, stop := w.load(objects, swaps*100)
	memory, heapBefore := resident(), heapInUse()
	during := w.swapMany(swaps)
	stop()
	enginetest.Until(t, "the last state of each object is reconciled", func() bool { return w.observer.behind() == 0 })
	n, m := w.sent.lists.Load(), w.sent.watches.Load() // cut is read later: a stream ends before the next one is requested
	if cut := w.sent.cut.Load(); n != lists || m > watches+cut {
		t.Errorf("%d LISTs and %d WATCHes, before the swaps %d and %d; the API server ended %d", n, m, lists, watches, cut)
	}
	w.observer.mu.Lock()
	defer w.observer.mu.Unlock()
	if len(w.observer.faults) > 0 {
		t.Errorf("%d faults: %s", len(w.observer.faults), strings.Join(w.observer.faults[:min(5, len(w.observer.faults))], "; "))
	}
	in, out := w.observer.split(during)
	t.Logf("%d swaps, %d events, %d runs; event to reconcile: p50 %v, p99 %v in swaps, p50 %v, p99 %v outside; resident %d MiB before, %d MiB after; heap %d KiB before, %d KiB after, %d revisions kept; LISTs %d, WATCHes %d",
		swaps, events(), w.observer.runs, quantile(in, 0.5), quantile(in, 0.99), quantile(out, 0.5), quantile(out, 0.99), memory>>20, resident()>>20,
		heapBefore>>10, heapInUse()>>10, len(w.engine.Module.Revisions())-1, lists, watches)
}

// heapInUse returns the reachable memory, in bytes.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // less than the address space
}

// load changes objects at least this many times and until stop is called.
func (w *swapping) load(objects, least int) (events func() int, stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var mu sync.Mutex
	n := 0
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for edit := 2; ; edit++ {
				for i := worker; i < objects; i += 4 {
					mu.Lock()
					enough := n >= least
					mu.Unlock()
					if ctx.Err() != nil && enough {
						return
					}
					if err := w.put(w.t.Context(), i, edit); err != nil {
						w.t.Error(err)
						return
					}
					mu.Lock()
					n++
					mu.Unlock()
				}
			}
		})
	}
	events = func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
	return events, func() {
		cancel()
		wg.Wait()
	}
}

// span is the time of a swap.
type span struct{ from, to time.Time }

// swapMany swaps n times, every fifth time for a worse module and every fifth time by a
// canary, and waits for each verdict.
func (w *swapping) swapMany(n int) (during []span) {
	w.t.Helper()
	bad := [][]byte{nil, enginetest.Worse(enginetest.Traps, 0), enginetest.Worse(enginetest.TrapsOnTenth, 0), enginetest.Worse(enginetest.Spins, 0), enginetest.Worse(enginetest.Leaks, 0), enginetest.Worse(enginetest.Conflicts, 0)}
	for i := 1; i <= n; i++ {
		w.onProbation(time.Minute)
		switch {
		case i%5 == 3: // tried on half of the objects, and then promoted
			w.onProbation(200 * time.Millisecond)
			from := time.Now()
			number := w.canary(enginetest.Worse(enginetest.Good, i), halfOf(0))
			w.steerCanary(true)
			during = append(during, span{from, time.Now()})
			if g := w.verdict(number); g.State != "live" {
				w.t.Errorf("good module %d, a canary: %s: %s", number, g.State, g.Reason)
			}
		case i%5 != 0:
			w.onProbation(200 * time.Millisecond)
			from := time.Now()
			number := w.mustSwap(enginetest.Worse(enginetest.Good, i))
			during = append(during, span{from, time.Now()})
			if g := w.verdict(number); g.State != "live" {
				w.t.Errorf("good module %d: %s: %s", number, g.State, g.Reason)
			}
		case bad[i/5%len(bad)] == nil:
			if _, err := w.swap([]byte("\x00asm nonsense")); err == nil {
				w.t.Error("a module that does not load was swapped in")
			}
		default:
			number := w.mustSwap(enginetest.Numbered(bad[i/5%len(bad)], i))
			if g := w.verdict(number); g.State != "failed" {
				w.t.Errorf("bad module %d (%d): %s", number, i/5%len(bad), g.State)
			}
		}
	}
	return during
}

// split returns the latencies of events within the spans, and of the others.
func (o *observer) split(spans []span) (in, out []time.Duration) {
	for _, s := range o.latency {
		if slices.ContainsFunc(spans, func(p span) bool { return s.sent.After(p.from) && s.sent.Before(p.to) }) {
			in = append(in, s.took)
		} else {
			out = append(out, s.took)
		}
	}
	return in, out
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))].Round(10 * time.Microsecond)
}

// resident returns the process's resident memory, in bytes; 0 if it is unknown.
func resident() int64 {
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// TestSwap_EventNamesWhatIsLiveAgain: after two quick swaps, the rollback goes to the
// revision that had passed, not to the previous one, and its event says so.
func TestSwap_EventNamesWhatIsLiveAgain(t *testing.T) {
	opts := swapOptions()
	opts.Rollout.Probation = "1h"
	good := enginetest.Worse(enginetest.Good, 0)
	w := newSwapping(t, good, opts)
	w.putAll(4, 1)
	quick := w.mustSwap(enginetest.Worse(enginetest.Good, 1))
	bad := w.mustSwap(enginetest.Worse(enginetest.Traps, 2))
	if g := w.verdict(bad); g.State != "failed" {
		t.Errorf("revision %+v", g)
	}
	e := w.event("ModuleRolledBack")
	for _, want := range []string{fmt.Sprintf("revision %d of the module", bad), fmt.Sprintf("as revision %d: module %s", bad+1, humanize.Digest(load.DigestOf(good)))} {
		if !strings.Contains(e.Note, want) {
			t.Errorf("revisions %d and %d: the event does not say %q: %s", quick, bad, want, e.Note)
		}
	}
}

// TestSwap_BadDigestIsNotTriedAgain: a module that was rolled back is refused until it is
// forced, and so is one that needs more than a running controller can change.
func TestSwap_BadDigestIsNotTriedAgain(t *testing.T) {
	opts := swapOptions()
	opts.Rollout.Probation = "1h"
	w := newSwapping(t, enginetest.Worse(enginetest.Good, 0), opts)
	for i := range 4 {
		if err := w.put(t.Context(), i, 1); err != nil {
			t.Fatal(err)
		}
	}
	enginetest.Until(t, "all objects are reconciled", func() bool { return w.observer.behind() == 0 })
	number := w.mustSwap(enginetest.Worse(enginetest.Traps, 1))
	if g := w.verdict(number); g.State != "failed" || !strings.Contains(g.Reason, "trapped") || g.Errors == 0 {
		t.Errorf("revision %+v", g)
	}
	enginetest.Until(t, "the one before is live", func() bool { return w.engine.Module.Revision() == number+1 })
	if w.engine.Module.Digest() != load.DigestOf(enginetest.Worse(enginetest.Good, 0)) {
		t.Error("it is another")
	}
	if _, err := w.swap(enginetest.Worse(enginetest.Traps, 1)); err == nil || !strings.Contains(err.Error(), "was rolled back") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("the bad one again: %v", err)
	}
	if _, err := w.swap(wasm.BadExports); err == nil {
		t.Error("a module that does not load was taken")
	}
	refused := w.engine.Revisions()
	if last := refused[len(refused)-1]; last.State != "refused" || last.Number != 0 || last.Reason == "" {
		t.Errorf("not in the status: %+v", last)
	}
}
