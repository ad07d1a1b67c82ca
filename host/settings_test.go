// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// mode are settings of wasm.Configure.
func mode(letter string) map[string]string { return map[string]string{"mode": letter} }

// configured runs one reconcile and returns how often the guest was configured.
func configured(tb testing.TB, g abi.Guest) int64 {
	tb.Helper()
	res, err := g.Reconcile(tb.Context(), request(0))
	if err != nil {
		tb.Fatal(err)
	}
	return res.Action.After.Milliseconds()
}

// Each instance is configured once before its first entry, and once per change
// before the next; a guest in use keeps the settings that it started with.
func TestConfigure_OncePerInstanceAndChange(t *testing.T) {
	m := loaded(t, wasm.Configure, Config{Settings: mode("1")})
	first, second := acquire(t, m), acquire(t, m)
	for range 2 {
		if a, b := configured(t, first), configured(t, second); a != 1 || b != 1 {
			t.Errorf("new instances were configured %d and %d times", a, b)
		}
	}
	if err := m.Configure(t.Context(), mode("2")); err != nil {
		t.Fatal(err)
	}
	if n := configured(t, first); n != 1 || first.in.Desk.Settings.Gen != 1 {
		t.Errorf("in use: configured %d times, with settings %d", n, first.in.Desk.Settings.Gen)
	}
	first.release()
	again := acquire(t, m) // the one released last
	if n := configured(t, again); n != 2 || again.in.Desk.Settings.Gen != 2 {
		t.Errorf("after the change: configured %d times, with settings %d", n, again.in.Desk.Settings.Gen)
	}
	again.release()
	if n := configured(t, acquire(t, m)); n != 2 {
		t.Errorf("without another change: configured %d times", n)
	}
	if err := m.Configure(t.Context(), mode("2")); err != nil {
		t.Fatal(err)
	}
	if values, gen := m.Settings(); gen != 2 || !cmp.Equal(values, mode("2")) {
		t.Errorf("equal settings are a change: %v, %d", values, gen)
	}
}

// configure reads the message of ABI.md, config_get serves the same settings
// meanwhile, and the API is out of reach.
func TestConfigure_WhatTheGuestSees(t *testing.T) {
	module := withManifest(t, wasm.Configure, &abi.Manifest{Config: map[string]string{"a": "1", "b": "2"}})
	m := loaded(t, module, Config{Settings: map[string]string{"b": "3"}, API: apiOf(nil)})
	check := func(gen int64, want map[string]string) {
		t.Helper()
		g := acquire(t, m)
		defer g.release()
		message := abi.AppendSettings(nil, &abi.Settings{Generation: gen, Values: want})
		if got, _ := memoryOf(g.in).Read(1024, uint32(len(message))); !cmp.Equal(message, got) {
			t.Errorf("message %q, want %q", got, message)
		}
		all := encoded(want)
		if got, _ := memoryOf(g.in).Read(600, uint32(len(all))); !cmp.Equal(all, got) {
			t.Errorf("config_get answered %q, want %q", got, all)
		}
		for _, at := range []uint32{520, 528} {
			v, _ := memoryOf(g.in).ReadUint64Le(at)
			if s, _ := unpackResult(v); s != abi.StatusUnavailable {
				t.Errorf("cache_get or api_get: %s", s)
			}
		}
	}
	check(1, map[string]string{"a": "1", "b": "3"})
	if err := m.Configure(t.Context(), map[string]string{"c": "4"}); err != nil {
		t.Fatal(err)
	}
	check(2, map[string]string{"a": "1", "b": "2", "c": "4"})
}

// A change that the guest refuses, or that it does not survive, changes
// nothing for anybody.
func TestConfigure_RefusedSettingsStayOut(t *testing.T) {
	for letter, want := range map[string]string{
		"r": "module[m]: configure: the settings stay as they were: guest[configure]: settings refused: NoLuck: bad colour",
		"t": "guest[configure]: trap: wasm error: unreachable",
		"s": "guest[configure]: timeout: exceeded its time limit (timeout 100ms)",
		"b": "guest[configure]: output: result of 16 bytes at 65530 does not lie in memory",
	} {
		m := loaded(t, wasm.Configure, Config{Name: "m", Settings: mode("1")})
		if letter == "s" {
			hurry(m, 100*time.Millisecond)
		}
		err := m.Configure(t.Context(), mode(letter))
		hurry(m, share.DefaultTimeout)
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, operation.ErrRefused) != (letter == "r") {
			t.Errorf("%s: got %v, want %s", letter, err, want)
		}
		if refusal, ok := errors.AsType[*abi.ResultError](err); ok != (letter == "r") || ok && refusal.Class != abi.ErrorPermanent {
			t.Errorf("%s: %+v", letter, refusal)
		}
		g := acquire(t, m)
		if values, gen := m.Settings(); gen != 1 || values["mode"] != "1" || configured(t, g) != 1 || g.in.Desk.Settings.Gen != 1 {
			t.Errorf("%s: settings are %v, %d", letter, values, gen)
		}
		g.release()
		if err := m.Configure(t.Context(), mode("e")); err != nil { // an empty map accepts
			t.Errorf("%s: the next change: %v", letter, err)
		}
	}
}

// A module that refuses its first settings does not load, and that is not the
// module's fault.
func TestLoad_RefusedSettings(t *testing.T) {
	_, err := Load(t.Context(), wasm.Configure, Config{Name: "m", Settings: mode("r")})
	want := "module[m]: start: guest[configure]: settings refused: NoLuck: bad colour"
	if !errors.Is(err, operation.ErrRefused) || errors.Is(err, load.ErrInvalidModule) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := Load(t.Context(), wasm.Configure, Config{Settings: mode("t")}); !errors.Is(err, load.ErrInvalidModule) {
		t.Errorf("a trap in configure: %v", err)
	}
	if _, err := Load(t.Context(), wasm.Configure, Config{Settings: mode(strings.Repeat("x", abi.MaxBytes))}); !errors.Is(err, abi.ErrTooLarge) {
		t.Errorf("settings of 4 MiB: %v", err)
	}
}

// An idle instance that does not survive a change that others accept is
// replaced by a fresh one, and the run goes on.
func TestConfigure_InstanceThatCannotChangeIsReplaced(t *testing.T) {
	var log bytes.Buffer
	m := loaded(t, wasm.Configure, Config{Settings: mode("1"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	g := acquire(t, m)
	if err := m.Configure(t.Context(), mode("u")); err != nil { // traps where it is not the first call
		t.Fatal(err)
	}
	old := g.in
	g.release()
	g = acquire(t, m)
	if n := configured(t, g); n != 1 || g.in == old || !old.Closed() || g.in.Desk.Settings.Gen != 2 {
		t.Errorf("configured %d times, settings %d", n, g.in.Desk.Settings.Gen)
	}
	if !strings.Contains(log.String(), "replacing an instance that refused the new settings") || !strings.Contains(log.String(), "unreachable") {
		t.Errorf("the log does not say why: %s", log.String())
	}
}

// A module without configure gets new settings through config_get.
func TestConfigure_WithoutTheExport(t *testing.T) {
	m := loaded(t, wasm.Calls, Config{})
	if err := m.Configure(t.Context(), map[string]string{"size": "2"}); err != nil {
		t.Fatal(err)
	}
	g := acquire(t, m)
	poke(t, g, requestAt, []byte("\x81\xa3key\xa4size"))
	status, n := unpackResult(uint64(play(t, g, hostCall{"config_get", [4]uint32{requestAt, 10, dstAt, 16}})[0]))
	if b, _ := memoryOf(g.in).Read(dstAt, n); status != abi.StatusOK || string(b) != "\xa12" {
		t.Errorf("%s %q", status, b)
	}
}

// Changes do not make the pool grow.
func TestConfigure_ReplacesAnIdleInstance(t *testing.T) {
	m := loaded(t, wasm.Configure, Config{Settings: mode("1")})
	for letter := range strings.SplitSeq("23456789", "") {
		if err := m.Configure(t.Context(), mode(letter)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(m.last.Load().pool.idle); n != 1 {
		t.Errorf("%d instances are idle, want 1", n)
	}
}

func TestConfigure_EndOfContextChangesNothing(t *testing.T) {
	m := loaded(t, wasm.Configure, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Configure(ctx, mode("1")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, gen := m.Settings(); gen != 1 {
		t.Errorf("settings %d", gen)
	}
}

// Hammer: settings change, some refused, beside reconciles and maps that trap
// and time out. Each run sees settings that were in force, and the number of
// accepted changes is the number of the settings.
func TestConfigure_Hammer(t *testing.T) {
	workers, rounds := 4, 60
	if testing.Short() {
		workers, rounds = 3, 20
	}
	m := loaded(t, wasm.Configure, Config{Concurrency: 2, Settings: mode("0"), Limits: share.Limits{Timeout: 20 * time.Second}})
	var accepted atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				letter := string(rune('1' + (w*rounds+i)%8))
				if i%4 == 3 {
					letter = []string{"r", "t", "b"}[i%3]
				}
				_, before := m.Settings()
				switch err := m.Configure(t.Context(), mode(letter)); {
				case err != nil && !strings.ContainsAny(letter, "rtb"):
					t.Error(err)
				case err == nil:
					accepted.Add(1)
				}
				if _, after := m.Settings(); after < before {
					t.Errorf("settings went from %d back to %d", before, after)
				}
			}
		})
		wg.Go(func() {
			for range rounds {
				g, release, err := m.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				in := g.(*lease).in
				values, gen := maps.Clone(in.Desk.Settings.Plain), in.Desk.Settings.Gen
				if n := configured(t, g); n == 0 || strings.ContainsAny(values["mode"], "rtb") || g.(*lease).in.Desk.Settings.Gen != gen {
					t.Errorf("configured %d times, with %v", n, values)
				}
				release()
				if _, err := m.Map(t.Context(), event(nil)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, gen := m.Settings(); gen < 2 || gen > accepted.Load()+1 {
		t.Errorf("settings %d after %d accepted changes", gen, accepted.Load())
	}
	if n := len(m.last.Load().pool.idle); n > 2+hookSlots {
		t.Errorf("%d instances are idle, at most %d can be in use", n, 2+hookSlots)
	}
}
