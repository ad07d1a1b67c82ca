// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// variant is a module that does the same and has another digest.
func variant(module []byte, n int) []byte {
	return withSection(module, "variant", fmt.Append(nil, n))
}

// swap prepares and promotes.
func swap(tb testing.TB, m *Module, module []byte) uint64 {
	tb.Helper()
	c, err := m.Prepare(tb.Context(), module, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.Promote(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return c.Number()
}

// states are the revisions, as "number state".
func states(m *Module) []string {
	var out []string
	for _, g := range m.Revisions() {
		out = append(out, fmt.Sprintf("%d %s", g.Number, g.State))
	}
	return out
}

// wantStates waits until the revisions are these: the end of a run that was
// interrupted is noticed by the goroutine that ran it.
func wantStates(tb testing.TB, m *Module, want ...string) {
	tb.Helper()
	if diff := cmp.Diff(want, states(m)); diff != "" {
		tb.Errorf("revisions (-want +got):\n%s", diff)
	}
}

func TestPrepare_SameBytesAreNoSwap(t *testing.T) {
	m := loaded(t, wasm.Modes, Config{})
	if _, err := m.Prepare(t.Context(), wasm.Modes, nil); !errors.Is(err, ErrSameModule) {
		t.Errorf("got %v", err)
	}
	if m.Revision() != 1 {
		t.Errorf("revision %d", m.Revision())
	}
	wantStates(t, m, "1 live")
}

// A run belongs to one revision from start to end, error_policy and the
// instance that it gets after a trap included. cancelled tells it.
func TestPromote_RunsStayWithTheirRevision(t *testing.T) {
	m := loaded(t, wasm.Modes, Config{Concurrency: 2})
	old := acquire(t, m)
	if _, err := old.Reconcile(t.Context(), request(11)); err != nil {
		t.Fatal(err)
	}
	number := swap(t, m, variant(wasm.Modes, 2))
	fresh := acquire(t, m)
	if old.Revision() != 1 || fresh.Revision() != 2 || number != 2 || m.Revision() != 2 {
		t.Errorf("revisions %d, %d, %d", old.Revision(), fresh.Revision(), number)
	}
	_, err := old.Reconcile(t.Context(), request(1))
	if ce := callError(t, err); ce.Kind != abi.FailureTrap {
		t.Error(err)
	}
	if res, err := old.ErrorPolicy(t.Context(), &abi.Failure{}); err != nil || res.Action.After != time.Millisecond || old.Revision() != 1 {
		t.Errorf("error_policy of the old one: %+v %v, on revision %d", res, err, old.Revision())
	}
	wantStates(t, m, "1 draining", "2 live")
	old.release()
	wantStates(t, m, "1 kept", "2 live")
}

// A revision has the instances that its runs will need before it takes over; but no
// more than there is memory for, which is no reason to refuse it.
func TestPromote_HasTheInstancesBefore(t *testing.T) {
	inThisProcess(t)
	for want, budget := range map[int]*share.Budget{3: nil, 2: share.NewBudget(pages(5), 0)} {
		m := loaded(t, wasm.Modes, Config{Concurrency: 4, Process: Process{Budget: budget}})
		var held []func()
		for range 3 {
			_, release, err := m.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, release)
		}
		number := swap(t, m, variant(wasm.Modes, 1))
		g := m.last.Load()
		if g.spec.Number != number || g.spec.All.Len() != want || len(g.pool.idle) != want {
			t.Errorf("revision %d of %d has %d instances, %d idle, want %d", g.spec.Number, number, g.spec.All.Len(), len(g.pool.idle), want)
		}
		if err := m.Healthy(); err != nil {
			t.Error(err)
		}
		for _, release := range held {
			release()
		}
	}
}

func TestPromote_CancelledTellsTheOldRevisionOnly(t *testing.T) {
	m := loaded(t, wasm.Calls, Config{Concurrency: 2})
	cancelled := func(g *lease) int64 { return play(t, g, hostCall{"cancelled", [4]uint32{}})[0] }
	old := acquire(t, m)
	if n := cancelled(old); n != 0 {
		t.Errorf("before: %d", n)
	}
	swap(t, m, variant(wasm.Calls, 2))
	if o, n := cancelled(old), cancelled(acquire(t, m)); o != 1 || n != 0 {
		t.Errorf("old %d, new %d, want 1 and 0", o, n)
	}
}

// What is left of a revision after its time is interrupted: a guest that
// computes and one that waits in an operation. Its error asks for a retry at
// once, and its error_policy is not run any longer.
func TestPromote_RunsThatAreLeftAreInterrupted(t *testing.T) {
	waiting := make(chan struct{})
	api := &scriptedAPI{f: func(ctx context.Context, _ abi.Op, _ []byte) abi.Response {
		close(waiting)
		<-ctx.Done()
		return abi.Response{Status: abi.StatusCancelled}
	}}
	for name, module := range map[string][]byte{"computes": wasm.Modes, "waits": wasm.Spy} {
		t.Run(name, func(t *testing.T) {
			m := loaded(t, module, Config{API: apiOf(api), Keep: Keep{Drain: 10 * time.Millisecond}, Limits: share.Limits{Timeout: time.Hour}})
			g := acquire(t, m)
			ended := make(chan error, 1)
			go func() {
				_, err := g.Reconcile(t.Context(), request(2))
				ended <- err
			}()
			if name == "waits" {
				<-waiting
			}
			swap(t, m, variant(module, 2))
			err := <-ended
			var res *abi.ResultError
			if !errors.As(err, &res) || res.Reason != "ModuleSwapped" || res.After == 0 || res.Class != abi.ErrorTransient {
				t.Errorf("interrupted: %v", err)
			}
			if _, err := g.ErrorPolicy(t.Context(), &abi.Failure{}); !errors.As(err, &res) || res.Reason != "ModuleSwapped" {
				t.Errorf("error_policy: %v", err)
			}
			g.release()
			wantStates(t, m, "1 kept", "2 live")
		})
	}
}

// Interrupt does not wait for the time to drain.
func TestInterrupt_EndsADrainingRevisionAtOnce(t *testing.T) {
	m := loaded(t, wasm.Modes, Config{Limits: share.Limits{Timeout: time.Hour}})
	g := acquire(t, m)
	m.Interrupt(1) // live: nothing happens
	if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
		t.Error(err)
	}
	swap(t, m, variant(wasm.Modes, 2))
	m.Interrupt(1)
	if _, err := g.Reconcile(t.Context(), request(2)); err == nil {
		t.Error("a run of the old revision goes on")
	}
}

// Whatever is wrong with new bytes, those that are live stay as they are, and
// nothing is left behind.
func TestPrepare_BadModuleChangesNothing(t *testing.T) {
	refusal := errors.New("no")
	m := loaded(t, wasm.Configure, Config{Settings: mode("1")})
	for name, bad := range map[string]struct {
		module  []byte
		connect Connect
		want    error
	}{
		"no module":   {[]byte("nonsense"), nil, load.ErrInvalidModule},
		"exports":     {wasm.BadExports, nil, load.ErrInvalidModule},
		"start traps": {wasm.StartTrap, nil, load.ErrInvalidModule},
		"start spins": {wasm.InitSpin, nil, load.ErrInvalidModule},
		"manifest":    {variant(wasm.Modes, 1), func(string, *abi.Manifest) (operation.API, error) { return nil, refusal }, refusal},
	} {
		m.cfg.Limits.Timeout = share.DefaultTimeout
		if name == "start spins" {
			m.cfg.Limits.Timeout = 50 * time.Millisecond
		}
		c, err := m.Prepare(t.Context(), bad.module, bad.connect)
		if c != nil || !errors.Is(err, bad.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	g := acquire(t, m)
	if n := configured(t, g); n != 1 || g.Revision() != 1 {
		t.Errorf("configured %d times, revision %d", n, g.Revision())
	}
	g.release()
	wantStates(t, m, "1 live")
	c, err := m.Prepare(t.Context(), variant(wasm.Modes, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantStates(t, m, "1 live", fmt.Sprint(c.Number(), " loading"))
	c.Discard()
	c.Discard()
	wantStates(t, m, "1 live")
}

// A revision is kept compiled for a while, and no longer; a rollback is a new
// revision of the same code.
func TestPrepareKept_WithinItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := loaded(t, wasm.Modes, Config{Keep: Keep{Code: time.Minute}})
		first := m.Digest()
		swap(t, m, variant(wasm.Modes, 2))
		<-time.After(59 * time.Second)
		code := m.kept[0].program
		c, err := m.PrepareKept(t.Context(), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.rev.program != code {
			t.Error("it was compiled again")
		}
		if err := c.Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m.Digest() != first || m.Revision() != 3 {
			t.Errorf("digest %s, revision %d", m.Digest(), m.Revision())
		}
		<-time.After(30 * time.Second) // revision 1 goes, its code is live again
		wantStates(t, m, "2 kept", "3 live")
		if _, err := acquire(t, m).Reconcile(t.Context(), request(0)); err != nil {
			t.Error(err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		wantStates(t, m, "3 live")
		for _, number := range []uint64{0, 2} {
			if _, err := m.PrepareKept(t.Context(), number, nil); !errors.Is(err, ErrNotKept) {
				t.Errorf("revision %d, after its time: %v", number, err)
			}
		}
	})
}

// No more than maxKept are kept, the newest; bytes that are kept are not
// compiled again; Drop forgets one.
func TestPromote_KeepsTheNewest(t *testing.T) {
	m := loaded(t, wasm.Modes, Config{})
	for n := 2; n <= 6; n++ {
		swap(t, m, variant(wasm.Modes, n))
	}
	wantStates(t, m, "3 kept", "4 kept", "5 kept", "6 live")
	code := m.kept[1].program
	swap(t, m, variant(wasm.Modes, 4))
	if got := m.last.Load().program; got != code {
		t.Error("bytes that were kept are compiled again")
	}
	if c, err := m.PrepareKept(t.Context(), 0, nil); err != nil || c.Digest() != load.DigestOf(variant(wasm.Modes, 6)) {
		t.Errorf("the one before: %v", err)
	} else {
		c.Discard()
	}
	m.Drop(6)
	c, err := m.PrepareKept(t.Context(), 0, nil)
	if err != nil || c.Digest() != load.DigestOf(variant(wasm.Modes, 5)) {
		t.Fatalf("the one before that has other bytes: %v", err)
	}
	c.Discard()
	m.Drop(5)
	wantStates(t, m, "4 kept", "7 live")
	swap(t, m, variant(wasm.Modes, 10))
	wantStates(t, m, "7 kept", "10 live") // 4 and 7 are one code
}

// Settings that change while a candidate waits are the candidate's when it is
// promoted, with a number of their own; where it refuses them it is not.
func TestPromote_TakesTheSettingsInForce(t *testing.T) {
	m := loaded(t, wasm.Configure, Config{Settings: mode("1")})
	c, err := m.Prepare(t.Context(), variant(wasm.Configure, 2), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Configure(t.Context(), mode("2")); err != nil {
		t.Fatal(err)
	}
	if err := c.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if values, gen := m.Settings(); !maps.Equal(values, mode("2")) || gen != 3 {
		t.Errorf("settings %v, number %d", values, gen)
	}
	g := acquire(t, m)
	if n := configured(t, g); n != 1 || g.Revision() != 2 {
		t.Errorf("configured %d times, revision %d", n, g.Revision())
	}
	g.release()

	swap(t, m, variant(wasm.Modes, 3)) // has no configure: takes anything
	if _, gen := m.Settings(); gen != 3 {
		t.Errorf("the same settings have number %d now", gen)
	}
	c, err = m.Prepare(t.Context(), variant(wasm.Configure, 4), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Discard()
	if err := m.Configure(t.Context(), mode("r")); err != nil {
		t.Fatal(err)
	}
	if err := c.Promote(t.Context()); !errors.Is(err, operation.ErrRefused) {
		t.Errorf("settings that it refuses: %v", err)
	}
	if m.Revision() != 3 {
		t.Errorf("revision %d", m.Revision())
	}
}

// Map and filter are those of the revision that is live.
func TestPromote_HooksFollow(t *testing.T) {
	m := loaded(t, withManifest(t, wasm.Echo, &abi.Manifest{Hooks: abi.HookNames{abi.ExportMap}}), Config{})
	if !m.HasHook(abi.ExportMap) {
		t.Fatal("no map")
	}
	c, err := m.Prepare(t.Context(), wasm.Modes, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Map(t.Context(), &abi.Event{}); !errors.Is(err, ErrNoHook) {
		t.Errorf("map of the candidate: %v", err)
	}
	if _, err := m.Map(t.Context(), &abi.Event{}); errors.Is(err, ErrNoHook) {
		t.Error("the live one has lost its map")
	}
	if err := c.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.HasHook(abi.ExportMap) {
		t.Error("the old one's hook")
	}
	if _, err := m.Map(t.Context(), &abi.Event{}); !errors.Is(err, ErrNoHook) {
		t.Errorf("map: %v", err)
	}
}

func TestPromote_AfterCloseIsRefused(t *testing.T) {
	m, err := Load(t.Context(), wasm.Modes, Config{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.Prepare(t.Context(), variant(wasm.Modes, 2), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with a candidate: %v", err)
	}
	if err := c.Promote(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	c.Discard()
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Memory and code of revisions that ended return.
func TestPromote_ReturnsEverything(t *testing.T) {
	inThisProcess(t)
	m := loaded(t, wasm.Calls, Config{Keep: Keep{Code: -1}})
	n := 1
	once := func() {
		n++
		swap(t, m, variant(wasm.Calls, n))
		g, release, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		play(t, g.(*lease), hostCall{"log_level", [4]uint32{}})
		release()
	}
	once()
	used := heap()
	for range 30 {
		once()
	}
	if grown := heap() - used; grown > 1<<20 { // an instance alone has 256 KiB
		t.Errorf("%d bytes of heap are still in use", grown)
	}
	wantStates(t, m, fmt.Sprint(n, " live"))
}

// witness notes which revision runs a key.
type witness struct {
	mu      sync.Mutex
	running map[string]uint64 // guarded by mu
	last    map[string]uint64 // guarded by mu; the newest revision that ran a key
}

func (w *witness) begin(key string, revision uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if other, ok := w.running[key]; ok {
		return fmt.Errorf("%s runs in revision %d and in %d", key, other, revision)
	}
	if revision < w.last[key] {
		return fmt.Errorf("%s goes back from revision %d to %d", key, w.last[key], revision)
	}
	w.running[key], w.last[key] = revision, revision
	return nil
}

func (w *witness) end(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, key)
}

// Hammer: 100 swaps, every fifth to a module that traps, while all keys run all
// the time, with settings that change and hooks: no run is lost or refused, none
// is of two revisions, and no revision is left.
func TestPromote_Hammer(t *testing.T) {
	swaps, workers := 100, 6
	if testing.Short() {
		swaps = 20
	}
	m := loaded(t, wasm.Modes, Config{Concurrency: 4})
	w := &witness{running: map[string]uint64{}, last: map[string]uint64{}}
	var stop atomic.Bool
	var runs, trapped atomic.Int64
	var wg sync.WaitGroup
	for n := range workers {
		key := fmt.Sprint("key", n)
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				g, release, err := m.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if err := w.begin(key, g.Revision()); err != nil {
					t.Error(err)
				}
				before := g.Revision()
				_, err = g.Reconcile(t.Context(), request(byte(i%5/4)))
				if err != nil {
					trapped.Add(1)
					_ = callError(t, err)
					if _, err := g.ErrorPolicy(t.Context(), &abi.Failure{}); err != nil {
						t.Error(err)
					}
				}
				if g.Revision() != before {
					t.Error("the revision of a guest changed")
				}
				w.end(key)
				release()
				runs.Add(1)
			}
		})
	}
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if err := m.Configure(t.Context(), mode(fmt.Sprint(i))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for n := range swaps {
		if n%5 == 4 {
			if _, err := m.Prepare(t.Context(), variant(wasm.StartTrap, n), nil); !errors.Is(err, load.ErrInvalidModule) {
				t.Error(err)
			}
			continue
		}
		swap(t, m, variant(wasm.Modes, n))
	}
	stop.Store(true)
	wg.Wait()
	if runs.Load() == 0 || trapped.Load() == 0 {
		t.Errorf("%d runs, %d trapped", runs.Load(), trapped.Load())
	}
	if open := slices.DeleteFunc(m.Revisions(), func(g RevisionInfo) bool { return g.State == RevisionKept }); len(open) != 1 {
		t.Errorf("left: %+v", open)
	}
}

// The time to drain, in virtual time with a real guest that sleeps for an hour:
// it is told at once, interrupted when its time is over, and not before.
func TestPromote_DrainsInVirtualTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := loaded(t, wasm.WASI, Config{Limits: share.Limits{Timeout: 2 * time.Hour}, Keep: Keep{Code: -1}})
		g, release, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var ended time.Duration
		go func() {
			defer release()
			_, err := g.Reconcile(t.Context(), request(6))
			var res *abi.ResultError
			if !errors.As(err, &res) || res.Reason != "ModuleSwapped" {
				t.Error(err)
			}
			ended = time.Since(start)
		}()
		<-time.After(time.Second)
		swap(t, m, variant(wasm.WASI, 2))
		<-time.After(DefaultDrainTimeout - 1)
		synctest.Wait()
		wantStates(t, m, "1 draining", "2 live")
		<-time.After(1)
		synctest.Wait()
		wantStates(t, m, "2 live")
		if want := time.Second + DefaultDrainTimeout; ended != want {
			t.Errorf("ended after %v, want %v", ended, want)
		}
	})
}
