// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/meter"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// work is a request of the guest wasm.Work. A round is 6 units of fuel.
func work(rounds, calls uint32) *abi.Request {
	req := request(0)
	req.Object = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, rounds), calls)
	return req
}

// A call that uses more fuel than it may is a timeout of that call, which says
// how much that was and where the guest was; the lease goes on with another
// instance.
func TestFuel_LimitEndsTheCall(t *testing.T) {
	for limit, want := range map[int64]string{1: "guest[reconcile]: timeout: ran out of fuel: ", 10_000_000: "guest[reconcile]: timeout: ran out of fuel: 1000000"} {
		g := acquire(t, loaded(t, withManifest(t, named(wasm.Modes), &abi.Manifest{Limits: &abi.Limits{Fuel: limit}}), Config{}))
		_, err := g.Reconcile(t.Context(), request(2))
		if ce := callError(t, err); ce.Kind != abi.FailureTimeout || !errors.Is(err, share.ErrFuel) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("limit %d: got %v, want %s", limit, err, want)
		}
		if text := err.Error(); !strings.Contains(text, "\n\tf") || strings.Contains(text, "wazero") || strings.Contains(text, meter.RefillFunc) {
			t.Errorf("limit %d: got %q, want the guest's stack trace alone", limit, text)
		}
	}
	g := acquire(t, loaded(t, wasm.Modes, Config{Limits: share.Limits{Fuel: 100_000}}))
	if _, err := g.Reconcile(t.Context(), request(2)); !errors.Is(err, share.ErrFuel) {
		t.Error(err)
	}
	if res, err := g.Reconcile(t.Context(), request(11)); err != nil || res.Action.After != time.Millisecond {
		t.Errorf("afterwards: %+v %v, want a fresh instance", res, err)
	}
}

// The limit is of each call: what a call leaves is no use to the next, and what
// it took is back.
func TestFuel_LimitIsOfEachCall(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Work, Config{Limits: share.Limits{Fuel: 500_000}, Process: Process{slice: 10_000}}))
	for i := range 20 {
		if _, err := g.Reconcile(t.Context(), work(60_000, 0)); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if _, err := g.Reconcile(t.Context(), work(120_000, 0)); !errors.Is(err, share.ErrFuel) {
		t.Errorf("twice the work: %v", err)
	}
}

// Start code, describe, configure, map and filter are bounded as reconcile is.
func TestFuel_EveryEntryIsBounded(t *testing.T) {
	cfg := Config{Limits: share.Limits{Fuel: 100_000}}
	if _, err := Load(t.Context(), wasm.InitSpin, cfg); !errors.Is(err, share.ErrFuel) || !errors.Is(err, load.ErrInvalidModule) {
		t.Errorf("start code: %v", err)
	}
	spin := event(echoLength(nil, echoSpin))
	m := loaded(t, echo(t), cfg)
	if _, err := m.Map(t.Context(), spin); !errors.Is(err, share.ErrFuel) {
		t.Errorf("map: %v", err)
	}
	if _, err := m.Filter(t.Context(), spin); !errors.Is(err, share.ErrFuel) {
		t.Errorf("filter: %v", err)
	}
	req := request(0)
	req.Object = make([]byte, 6<<12)
	if _, err := acquire(t, loaded(t, wasm.Buffers, cfg)).Reconcile(t.Context(), req); !errors.Is(err, share.ErrFuel) {
		t.Errorf("buffer: %v", err)
	}
}

// The same request takes the same fuel, on a fresh instance as on a used one,
// and whatever the slices.
func TestFuel_SameOnEachRun(t *testing.T) {
	var first int64
	for _, slice := range []int64{0, 1, 777, 1 << 40} {
		g := acquire(t, loaded(t, wasm.Work, Config{API: apiOf(nil), Process: Process{slice: slice}}))
		for i := range 3 {
			before := g.Fuel()
			if _, err := g.Reconcile(t.Context(), work(5_000, 3)); err != nil {
				t.Fatal(err)
			}
			used := g.Fuel() - before
			if first == 0 {
				first = used
			}
			if used != first || used < 4*6*5_000 {
				t.Errorf("slice %d, call %d: used %d, at first %d", slice, i, used, first)
			}
		}
	}
}

// A whole Go program uses the same fuel, run by run, where it reads the same
// clock and randomness: Go seeds its maps and its scheduler from them.
func TestFuel_SameForAGoGuest(t *testing.T) {
	inThisProcess(t)
	module, cfg, req := example(t)
	cfg.Code.CacheDir = t.TempDir()
	cfg.Clock.Now, cfg.Clock.Mono = func() time.Time { return time.Unix(1_767_225_600, 0) }, func() int64 { return 1 }
	var runs [2][]int64
	for i := range runs {
		cfg.Clock.Random = rand.NewChaCha8([32]byte{1})
		g := acquire(t, loaded(t, module, cfg))
		for range 5 {
			before := g.Fuel()
			if res, err := g.Reconcile(t.Context(), req); err != nil || res.Error != nil {
				t.Fatal(err, res.Error)
			}
			runs[i] = append(runs[i], g.Fuel()-before)
		}
	}
	if diff := cmp.Diff(runs[0], runs[1]); diff != "" || runs[0][0] == 0 {
		t.Error(diff)
	}
}

// What the guests have used adds up to what the module has used, which counts
// start code as well.
func TestFuel_IsCounted(t *testing.T) {
	m := loaded(t, wasm.Work, Config{API: apiOf(nil)})
	before := m.Fuel()
	g := acquire(t, m)
	for range 3 {
		if _, err := g.Reconcile(t.Context(), work(1000, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if used := m.Fuel() - before; used != uint64(g.Fuel()) || used == 0 {
		t.Errorf("the module used %d, its only guest %d", used, g.Fuel())
	}
}

// budget(2) is what is left of the limit, and falls as the guest works.
func TestFuel_BudgetOfTheGuest(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Calls, Config{Limits: share.Limits{Fuel: 1_000_000}}))
	ask := hostCall{"budget", [4]uint32{uint32(abi.BudgetFuel)}}
	got := play(t, g, ask, ask, ask)
	if got[0] >= 1_000_000 || got[2] <= 0 || got[0] <= got[1] || got[0]-got[1] != got[1]-got[2] {
		t.Errorf("left, step by step: %d", got)
	}
}

// A guest that recurses forever is stopped before it takes the host's memory,
// and the trap says so.
func TestFuel_RecursionIsBounded(t *testing.T) {
	g := acquire(t, loaded(t, named(wasm.Modes), Config{}))
	before := allocated()
	_, err := g.Reconcile(t.Context(), request(3))
	if ce := callError(t, err); ce.Kind != abi.FailureTrap || !errors.Is(err, share.ErrStack) ||
		!strings.HasPrefix(err.Error(), "guest[reconcile]: trap: stack overflow: calls nested too deeply (stack 4Mi)\n\tf") {
		t.Error(err)
	}
	if grown := allocated() - before; grown > 32<<20 {
		t.Errorf("%d bytes were allocated", grown)
	}
	// Each call has the whole stack, whatever the last one left.
	for range 2 {
		if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
			t.Error(err)
		}
		inGuest(g.in).UseStack()
	}
}

// named returns a module whose first functions have names: f0, f1 and so on.
func named(module []byte) []byte {
	names := []byte{12}
	for i := range names[0] {
		name := fmt.Sprintf("f%d", i)
		names = append(append(names, i, byte(len(name))), name...)
	}
	payload := append([]byte{4, 'n', 'a', 'm', 'e', 1, byte(len(names))}, names...)
	return append(append(bytes.Clone(module), 0, byte(len(payload))), payload...)
}

// allocated is how many bytes of heap were ever allocated.
func allocated() int64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.TotalAlloc)
}

// The error of a guest that ran out of time says where it was.
func TestFuel_TimeoutHasAStackTrace(t *testing.T) {
	m := loaded(t, named(wasm.Modes), Config{})
	g := acquire(t, m)
	hurry(m, 300*time.Millisecond)
	_, err := g.Reconcile(t.Context(), request(2))
	if want := "guest[reconcile]: timeout: exceeded its time limit (timeout 300ms)\n\tf"; !strings.HasPrefix(err.Error(), want) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %s...", err, want)
	}
}

// A module over its rate is slowed down, within a call as between calls, and its
// timeout goes on meanwhile.
func TestFuel_RateSlowsTheModule(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := acquire(t, loaded(t, wasm.Work, Config{Limits: share.Limits{FuelRate: 600_000}, Process: Process{slice: 100_000}}))
		start := time.Now()
		for range 10 { // of 600,000 units each
			if _, err := g.Reconcile(t.Context(), work(100_000, 0)); err != nil {
				t.Fatal(err)
			}
		}
		// The first second's fuel is there at the start, and the last call's debt
		// would be the next one's.
		if took := time.Since(start); took < 8*time.Second || took > 10*time.Second {
			t.Errorf("10 calls of a second's fuel took %v", took)
		}
		start = time.Now()
		g = acquire(t, loaded(t, wasm.Modes, Config{Limits: share.Limits{FuelRate: 1_000_000}, Process: Process{slice: 100_000}}))
		_, err := g.Reconcile(t.Context(), request(2))
		if ce := callError(t, err); ce.Kind != abi.FailureTimeout || time.Since(start) != share.DefaultTimeout {
			t.Errorf("a guest that spins: after %v: %v", time.Since(start), err)
		}
		if used := g.Fuel(); used < 30_000_000 || used > 31_500_000 {
			t.Errorf("used %d in 30 s, at a rate of 1,000,000", used)
		}
	})
}

// A negative limit is an error, and the lower of the limits of config and manifest wins.
func TestLoad_FuelLimits(t *testing.T) {
	for _, cfg := range []Config{{Limits: share.Limits{Fuel: -1}}, {Limits: share.Limits{FuelRate: -1}}} {
		if _, err := Load(t.Context(), wasm.Empty, cfg); err == nil || errors.Is(err, load.ErrInvalidModule) {
			t.Errorf("%+v: got %v, want an error that is not the module's", cfg, err)
		}
	}
	module := withManifest(t, wasm.Modes, &abi.Manifest{Limits: &abi.Limits{Fuel: 7}})
	if m := loaded(t, module, Config{Limits: share.Limits{Fuel: 5}}); m.Limits().Fuel != 5 {
		t.Errorf("config over manifest: limit %d", m.Limits().Fuel)
	}
	if m := loaded(t, module, Config{}); m.Limits().Fuel != 7 {
		t.Errorf("manifest: limit %d", m.Limits().Fuel)
	}
	if m := loaded(t, module, Config{Limits: share.Limits{Fuel: 9}}); m.Limits().Fuel != 7 {
		t.Errorf("manifest over config: limit %d", m.Limits().Fuel)
	}
}

// The names of the counters are the host's. A module that has one of them is
// refused, by Inspect as by Load.
func TestLoad_NamesOfTheCountersAreReserved(t *testing.T) {
	taken := bytes.Replace(wasm.Modes, []byte("error_policy"), []byte(meter.FuelGlobal), 1)
	want := []string{"export[wasmctl_fuel]: reserved name: rename the export"}
	_, err := Load(t.Context(), taken, Config{})
	var invalid *load.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff(want, invalid.Problems); diff != "" {
		t.Errorf("Load: %s", diff)
	}
	if diff := cmp.Diff(want, load.Inspect(t.Context(), taken).Problems); diff != "" {
		t.Errorf("Inspect: %s", diff)
	}
}

// What is wrong with a module is said of its own bytes, not of its metered form.
func TestLoad_InvalidCodeIsNamedAsInspectDoes(t *testing.T) {
	bad := bytes.Replace(wasm.Modes, []byte{0x42, 0x00, 0x0b}, []byte{0x41, 0x00, 0x0b}, 1)
	_, err := Load(t.Context(), bad, Config{})
	var invalid *load.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff(load.Inspect(t.Context(), bad).Problems, invalid.Problems); diff != "" {
		t.Error(diff)
	}
}

// A thousand runs, good ones and all kinds of bad ones, leave nothing behind.
func TestModule_SoakLeavesNothing(t *testing.T) {
	inThisProcess(t)
	cfg := Config{Limits: share.Limits{Fuel: 200_000}}
	modes := []byte{0, 1, 2, 3, 5, 8, 11, 14}
	m := loaded(t, wasm.Modes, cfg)
	g := acquire(t, m)
	run := func(n int) {
		for i := range n {
			mode := modes[i%len(modes)]
			if mode == 3 && i%10 > 0 { // recursion takes long
				mode = 0
			}
			_, err := g.Reconcile(t.Context(), request(mode))
			var ce *abi.CallError
			if err != nil && !errors.As(err, &ce) {
				t.Fatal(err)
			}
		}
	}
	run(50)
	goroutines, used := runtime.NumGoroutine(), heap()
	run(1000)
	if grown := heap() - used; grown > 1<<20 {
		t.Errorf("%d bytes of heap more are in use", grown)
	}
	for range 1000 { // wazero's watchers end on their own, soon after their call
		if runtime.NumGoroutine() <= goroutines {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, were %d", runtime.NumGoroutine(), goroutines)
}
