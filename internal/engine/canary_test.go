// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/events"
	"github.com/wasmctl/wasmctl/internal/enginetest"
	"github.com/wasmctl/wasmctl/internal/life"
	"github.com/wasmctl/wasmctl/internal/rollout"
	"github.com/wasmctl/wasmctl/internal/rollout/canary"
)

// try swaps a module in on some of the objects.
func (w *swapping) canary(module []byte, c rollout.Canary) uint64 {
	w.t.Helper()
	number, tried, err := w.life.Swap(w.t.Context(), module, rollout.SwapOptions{Why: "test", Canary: &c})
	if err != nil || !tried {
		w.t.Fatalf("a canary %v: %v", tried, err)
	}
	return number
}

func halfOf(d time.Duration) rollout.Canary {
	return rollout.Canary{Config: canary.Config{Share: 0.5}, Time: d}
}

// bySelector tries a module on the objects with these numbers.
func (w *swapping) bySelector(numbers ...int) rollout.Canary {
	w.t.Helper()
	var names []string
	for _, i := range numbers {
		names = append(names, enginetest.ObjectName(i))
	}
	s, err := labels.Parse("object in (" + strings.Join(names, ",") + ")")
	if err != nil {
		w.t.Fatal(err)
	}
	return rollout.Canary{Config: canary.Config{Selector: s}}
}

// ranBy waits until all objects have run under a revision; revisions has the exceptions by
// the number of the object.
func (w *swapping) ranBy(want map[int]uint64) {
	w.t.Helper()
	got := map[int]uint64{}
	enginetest.Until(w.t, fmt.Sprint("objects are run by ", want), func() bool {
		w.observer.mu.Lock()
		defer w.observer.mu.Unlock()
		clear(got)
		for i := range want {
			got[i] = w.observer.by[abi.Key{Namespace: w.ns, Name: enginetest.ObjectName(i)}]
		}
		return maps.Equal(want, got)
	})
}

func (w *swapping) putAll(n, edit int) {
	w.t.Helper()
	for i := range n {
		if err := w.put(w.t.Context(), i, edit); err != nil {
			w.t.Fatal(err)
		}
	}
	enginetest.Until(w.t, "all objects are reconciled", func() bool { return w.observer.behind() == 0 })
}

// steerCanary ends a canary like a user.
func (w *swapping) steerCanary(promote bool) {
	w.t.Helper()
	end := w.life.Abort
	if promote {
		end = w.life.Promote
	}
	if _, err := end(w.t.Context(), "test"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *swapping) stateOf(number uint64) string {
	for _, g := range w.engine.Revisions() {
		if g.Number == number {
			return g.State
		}
	}
	return ""
}

// TestCanary_ObjectsStayAssigned: until it is promoted, a canary has the objects of its
// selector and no others, even if their labels change. After the promotion the other
// objects are reconciled too. An aborted canary gives its objects back.
func TestCanary_ObjectsStayAssigned(t *testing.T) {
	w := newSwapping(t, enginetest.Worse(enginetest.Good, 0), swapOptions())
	w.putAll(4, 1)
	first := w.canary(enginetest.Worse(enginetest.Good, 1), w.bySelector(1, 3))
	if got := w.stateOf(first); got != "canary" || w.engine.Module.Revision() != 1 {
		t.Errorf("revision %d is %q, revision %d is live", first, got, w.engine.Module.Revision())
	}
	w.ranBy(map[int]uint64{0: 1, 1: first, 2: 1, 3: first})
	w.unlabelled = true
	w.putAll(4, 2)
	w.ranBy(map[int]uint64{0: 1, 1: first, 2: 1, 3: first})
	w.steerCanary(false)
	w.ranBy(map[int]uint64{0: 1, 1: 1, 2: 1, 3: 1})
	if got := w.stateOf(first); got != "aborted" {
		t.Errorf("revision %d is %q", first, got)
	}
	if _, err := w.life.Abort(t.Context(), "test"); err == nil || !strings.Contains(err.Error(), "no canary is running") {
		t.Errorf("abort without a canary: %v", err)
	}
	w.unlabelled = false
	w.putAll(4, 3)
	second := w.canary(enginetest.Worse(enginetest.Good, 2), w.bySelector(0))
	w.ranBy(map[int]uint64{0: second, 1: 1, 2: 1, 3: 1})
	w.steerCanary(true)
	w.ranBy(map[int]uint64{0: second, 1: second, 2: second, 3: second})
	if g := w.verdict(second); g.State != "live" {
		t.Errorf("after its probation: %+v", g)
	}
	if n := w.observer.noted(w.key(0), second); n != 1 {
		t.Errorf("the canary's own object ran %d times in it, want once: it was not to run again for the promotion", n)
	}
	w.wantNoFaults()
}

// TestCanary_WorseIsAbortedByItself: it ends with its reason while the live revision goes
// on, which reconciles its objects; its module is not tried again, and the cluster has an
// event about it.
func TestCanary_WorseIsAbortedByItself(t *testing.T) {
	var mu sync.Mutex
	var reported []string
	opts := swapOptions()
	opts.shared.OnSwap = func(_, result string) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, result)
	}
	w := newSwapping(t, enginetest.Worse(enginetest.Good, 0), opts)
	w.putAll(6, 1)
	bad := w.canary(enginetest.Worse(enginetest.Traps, 1), w.bySelector(0, 2, 4))
	w.ranBy(map[int]uint64{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1})
	enginetest.Until(t, "it has failed", func() bool { return w.stateOf(bad) == string(life.CanaryFailed) })
	if w.engine.Module.Revision() != 1 {
		t.Errorf("revision %d is live", w.engine.Module.Revision())
	}
	options := w.bySelector(1)
	_, _, err := w.life.Swap(t.Context(), enginetest.Worse(enginetest.Traps, 1), rollout.SwapOptions{Canary: &options})
	if err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("the same bytes again: %v", err)
	}
	mu.Lock()
	if got := strings.Join(reported, " "); got != "canary failed refused" {
		t.Errorf("told %q", got)
	}
	mu.Unlock()
	e := w.event("CanaryFailed")
	if !strings.Contains(e.Note, "trapped") || e.Type != "Warning" {
		t.Errorf("%+v", e)
	}
	w.wantNoFaults()
}

// recordEvent is the Record of the fixture.
func (w *swapping) recordEvent(watched []string, e events.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
	if len(watched) != 1 || watched[0] != w.ns {
		w.t.Errorf("an event about a controller of %q", watched)
	}
}

// event waits for the event with a reason.
func (w *swapping) event(reason string) (found events.Event) {
	w.t.Helper()
	enginetest.Until(w.t, "there is an event "+reason, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		i := slices.IndexFunc(w.events, func(e events.Event) bool { return e.Reason == reason })
		if i >= 0 {
			found = w.events[i]
		}
		return i >= 0
	})
	return found
}

// TestCanary_IsPromotedAfterACleanTime, but not before it has run an object.
func TestCanary_IsPromotedAfterACleanTime(t *testing.T) {
	w := newSwapping(t, enginetest.Worse(enginetest.Good, 0), swapOptions())
	w.putAll(20, 1)
	none := w.bySelector(77)
	none.Time = time.Millisecond
	idle := w.canary(enginetest.Worse(enginetest.Good, 1), none)
	number := w.canary(enginetest.Worse(enginetest.Good, 2), halfOf(300*time.Millisecond))
	if got := w.stateOf(idle); got != string(life.CanaryReplaced) {
		t.Errorf("a canary without objects is %q, want that it was replaced", got)
	}
	want := map[int]uint64{}
	for i := range 20 {
		want[i] = number
	}
	w.ranBy(want)
	if g := w.verdict(number); g.State != "live" && g.State != "canary" {
		t.Errorf("revision %+v", g)
	}
	enginetest.Until(t, "it is live", func() bool { return w.stateOf(number) == "live" })
	w.wantNoFaults()
}

// TestCanary_WatchesOfBothManifests: both exist during the canary, and each has synced.
// Watches that only the canary needs end with it; it also retains watches that it shares
// with an earlier revision.
func TestCanary_WatchesOfBothManifests(t *testing.T) {
	opts := swapOptions()
	opts.Rollout.Probation, opts.Rollout.AllowMoreRights = "0s", new(true) // a watch is a right
	w := newSwapping(t, enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{Version: "1", Watches: []abi.Watch{watchOf("ConfigMap", "label:swap")}}), opts)
	w.putAll(3, 1)
	second := enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{Version: "2", Watches: []abi.Watch{watchOf("Secret", "label:swap")}})
	w.canary(second, w.bySelector(1))
	if got := w.sources(); got != "swaps configmaps secrets" {
		t.Errorf("watches %s", got)
	}
	w.wantReady()
	w.steerCanary(false)
	if got := w.sources(); got != "swaps configmaps" {
		t.Errorf("after it was aborted: watches %s", got)
	}
	w.canary(second, w.bySelector(1))
	w.steerCanary(true)
	if got := w.sources(); got != "swaps secrets" {
		t.Errorf("after it was promoted: watches %s", got)
	}
}

// TestCanary_KeepsWatchesThatWereToEnd: the previous revision had a watch that the canary
// also has. The end of the live revision's probation does not remove it.
func TestCanary_KeepsWatchesThatWereToEnd(t *testing.T) {
	opts := swapOptions()
	opts.Rollout.Probation = "1h"
	w := newSwapping(t, enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{Version: "1", Watches: []abi.Watch{watchOf("Secret", "label:swap")}}), opts)
	w.putAll(1, 1)
	w.onProbation(time.Second)
	live := w.mustSwap(enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{Version: "2"}))
	w.canary(enginetest.WithManifest(t, enginetest.Good, &abi.Manifest{Version: "3", Watches: []abi.Watch{watchOf("Secret", "label:swap")}}), w.bySelector(0))
	if g := w.verdict(live); g.State != "live" {
		t.Errorf("%+v", g)
	}
	if got := w.sources(); got != "swaps secrets" {
		t.Errorf("watches %s", got)
	}
	w.steerCanary(true)
	if got := w.sources(); got != "swaps secrets" {
		t.Errorf("after the promotion: watches %s", got)
	}
}

// TestCanary_TheLiveModuleAgainEndsIt: a user who swaps the live module in again no longer
// wants the canary. The same canary again changes nothing.
func TestCanary_TheLiveModuleAgainEndsIt(t *testing.T) {
	w := newSwapping(t, enginetest.Worse(enginetest.Good, 0), swapOptions())
	w.putAll(2, 1)
	number := w.canary(enginetest.Worse(enginetest.Good, 1), w.bySelector(1))
	options := w.bySelector(1)
	again, _, err := w.life.Swap(t.Context(), enginetest.Worse(enginetest.Good, 1), rollout.SwapOptions{Canary: &options})
	if again != number {
		t.Errorf("the same again is revision %d", again)
	}
	if err == nil {
		t.Error("the same canary was begun twice")
	}
	if _, err := w.swap(enginetest.Worse(enginetest.Good, 0)); err == nil {
		t.Error("the live module was swapped in")
	}
	if got := w.stateOf(number); got != string(life.CanaryReplaced) {
		t.Errorf("the canary is %q", got)
	}
}

// TestCanary_StopsWithItsProcess: a process that stops does not wait for the end of a
// canary (the cleanup of the test waits for the process).
func TestCanary_StopsWithItsProcess(t *testing.T) {
	w := newSwapping(t, enginetest.Worse(enginetest.Good, 0), swapOptions())
	w.putAll(2, 1)
	number := w.canary(enginetest.Worse(enginetest.Good, 1), w.bySelector(1))
	w.ranBy(map[int]uint64{0: 1, 1: number})
}
