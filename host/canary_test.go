// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

func prepareVariant(tb testing.TB, m *Module, n int) *Candidate {
	tb.Helper()
	c, err := m.Prepare(tb.Context(), variant(wasm.Modes, n), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// A canary's guests are its own, error_policy included, while the module's stay
// those of the live revision; both take slots of one bound, and what runs aside
// does not.
func TestCandidate_AcquireIsOfTheCandidate(t *testing.T) {
	m := loaded(t, wasm.Modes, Config{Concurrency: 2})
	c := prepareVariant(t, m, 2)
	live := acquire(t, m)
	tried, release, err := c.Acquire(t.Context())
	if err != nil || live.Revision() != 1 || tried.Revision() != 2 {
		t.Fatalf("revisions %d, %d: %v", live.Revision(), tried.Revision(), err)
	}
	if _, err := tried.Reconcile(t.Context(), request(1)); callError(t, err).Kind != abi.FailureTrap {
		t.Error(err)
	}
	if res, err := tried.ErrorPolicy(t.Context(), &abi.Failure{}); err != nil || res.Action.After != time.Millisecond {
		t.Errorf("error_policy: %+v %v", res, err)
	}
	busy, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := m.Acquire(busy); !errors.Is(err, context.Canceled) {
		t.Errorf("a third guest of two: %v", err)
	}
	extra, releaseExtra, err := c.AcquireExtra(t.Context())
	if err != nil || extra.Revision() != 2 {
		t.Fatal(err)
	}
	releaseExtra()
	release()
	live.release()
	if err := c.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g := acquire(t, m); g.Revision() != 2 {
		t.Errorf("after the promotion: revision %d", g.Revision())
	}
	wantStates(t, m, "1 kept", "2 live")
	swap(t, m, variant(wasm.Modes, 3))
	if _, _, err := c.Acquire(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("of a candidate that was replaced: %v", err)
	}
}

// What a canary still runs when it is discarded is told, goes on for the time to
// drain, and is interrupted then; the live revision is not touched.
func TestDiscard_DrainsACanary(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := loaded(t, wasm.WASI, Config{Limits: share.Limits{Timeout: 2 * time.Hour}, Keep: Keep{Code: -1}})
		c, err := m.Prepare(t.Context(), variant(wasm.WASI, 2), nil)
		if err != nil {
			t.Fatal(err)
		}
		g, release, err := c.Acquire(t.Context())
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
		c.Discard()
		if _, _, err := c.Acquire(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after it was discarded: %v", err)
		}
		synctest.Wait()
		wantStates(t, m, "1 live", "2 draining")
		<-time.After(DefaultDrainTimeout)
		synctest.Wait()
		wantStates(t, m, "1 live")
		if want := time.Second + DefaultDrainTimeout; ended != want {
			t.Errorf("ended after %v, want %v", ended, want)
		}
	})
}

// Settings that change while a canary lasts are the canary's too, under the same
// number; one that refuses them says so and keeps the old ones.
func TestCandidate_TakesSettings(t *testing.T) {
	m := loaded(t, wasm.Configure, Config{Settings: mode("1")})
	c, err := m.Prepare(t.Context(), variant(wasm.Configure, 2), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Discard()
	if err := m.Configure(t.Context(), mode("2")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time nothing changes
		if err := c.Configure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, gen := m.Settings()
	if s := c.rev.settings.Load(); s.Plain["mode"] != "2" || s.Gen != gen {
		t.Errorf("settings %v, number %d, want 2 and %d", s.Plain, s.Gen, gen)
	}
	swap(t, m, variant(wasm.Modes, 3)) // has no configure: takes anything
	if err := m.Configure(t.Context(), mode("r")); err != nil {
		t.Fatal(err)
	}
	if err := c.Configure(t.Context()); !errors.Is(err, operation.ErrRefused) {
		t.Errorf("settings that it refuses: %v", err)
	}
	if s := c.rev.settings.Load(); s.Plain["mode"] != "2" {
		t.Errorf("settings %v", s.Plain)
	}
}

// Hammer: objects of two sides run all the time while canaries come, are
// discarded or promoted: no run is refused, none is of two revisions, and no
// revision is left.
func TestCandidate_Hammer(t *testing.T) {
	m := loaded(t, wasm.Modes, Config{Concurrency: 4, Keep: Keep{Code: -1}})
	w := &witness{running: map[string]uint64{}, last: map[string]uint64{}}
	var current atomic.Pointer[Candidate]
	var stop atomic.Bool
	var tried atomic.Int64
	var wg sync.WaitGroup
	for n := range 6 {
		key := fmt.Sprint("key", n)
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				get := m.Acquire
				if c := current.Load(); c != nil && n%2 == 0 {
					get = c.Acquire
				}
				g, release, err := get(t.Context())
				if errors.Is(err, ErrClosed) {
					g, release, err = m.Acquire(t.Context())
				}
				if err != nil {
					t.Error(err)
					return
				}
				if g.Revision() > 1 && n%2 == 0 {
					tried.Add(1)
				}
				w.mu.Lock()
				if other, ok := w.running[key]; ok {
					t.Errorf("%s runs in revisions %d and %d", key, other, g.Revision())
				}
				w.running[key] = g.Revision()
				w.mu.Unlock()
				if _, err := g.Reconcile(t.Context(), request(byte(i%5/4))); err != nil {
					_ = callError(t, err)
				}
				w.end(key)
				release()
			}
		})
	}
	for n := range 40 {
		c := prepareVariant(t, m, n+2)
		current.Store(c)
		if err := m.Configure(t.Context(), mode(fmt.Sprint(n))); err != nil {
			t.Error(err)
		}
		if err := c.Configure(t.Context()); err != nil {
			t.Error(err)
		}
		if n%2 == 0 {
			if err := c.Promote(t.Context()); err != nil {
				t.Error(err)
			}
		}
		current.Store(nil)
		c.Discard()
	}
	stop.Store(true)
	wg.Wait()
	if tried.Load() == 0 {
		t.Error("no run was a canary's")
	}
	if n := len(m.Revisions()); n != 1 {
		t.Errorf("%d revisions are left: %v", n, states(m))
	}
}
