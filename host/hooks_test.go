// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/internal/instance"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// What the guest wasm.Echo does instead of returning the end of its object.
const (
	echoTrap = math.MaxUint32
	echoSpin = math.MaxUint32 - 1
)

// echo is wasm.Echo with a manifest that names a finalizer and uses map.
func echo(tb testing.TB) []byte {
	tb.Helper()
	return withManifest(tb, wasm.Echo, &abi.Manifest{Finalizer: "example.com/echo", Watches: []abi.Watch{{Kind: "Secret", Map: abi.MapFunc}}})
}

// echoObject makes wasm.Echo return result.
func echoObject(result []byte) []byte { return echoLength(result, uint32(len(result))) }

func echoLength(result []byte, n uint32) []byte {
	return binary.LittleEndian.AppendUint32(append([]byte{}, result...), n)
}

// event is an event whose new object is the argument of a guest.
func event(object []byte) *abi.Event {
	return &abi.Event{
		Controller: "test", Version: "v1", Kind: "Secret", Type: abi.EventUpdated,
		Key: abi.Key{Namespace: "default", Name: "web"}, Old: []byte{0x80}, New: object,
	}
}

func TestMap_ReturnsTheKeysOfTheGuest(t *testing.T) {
	m := loaded(t, echo(t), Config{})
	for name, want := range map[string]abi.MapResult{
		"none": {},
		"two":  {Keys: []abi.Key{{Namespace: "default", Name: "a"}, {Name: "cluster-scoped"}}},
		"most": {Keys: manyKeys(abi.MaxItems)},
	} {
		got, err := m.Map(t.Context(), event(echoObject(encodeKeys(want.Keys...))))
		if diff := cmp.Diff(want.Keys, got); err != nil || (diff != "" && len(want.Keys) > 0) {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if got, err := m.Map(t.Context(), event(echoObject(nil))); err != nil || len(got) != 0 {
		t.Errorf("an empty result: %v, %v", got, err)
	}
}

func manyKeys(n int) []abi.Key {
	keys := make([]abi.Key, n)
	for i := range keys {
		keys[i] = abi.Key{Namespace: "ns", Name: strings.Repeat("x", 1+i%40)}
	}
	return keys
}

// An error that the guest reports costs no instance and is not a CallError.
func TestMap_ErrorOfTheGuest(t *testing.T) {
	m := loaded(t, echo(t), Config{})
	want := &abi.ResultError{Class: abi.ErrorTransient, Message: "no namespace yet"}
	keys, err := m.Map(t.Context(), event(echoObject(encoded(map[string]any{"error": map[string]any{"class": string(want.Class), "message": want.Message}}))))
	got, ok := errors.AsType[*abi.ResultError](err)
	if !ok || keys != nil || !cmp.Equal(want, got) {
		t.Errorf("got %v, %v", keys, err)
	}
	if calls := echoCalls(t, m); calls != 1 {
		t.Errorf("the instance had %d calls, want 1: it was discarded", calls)
	}
}

// echoCalls is how many calls the idle instance has had.
func echoCalls(tb testing.TB, m *Module) uint32 {
	tb.Helper()
	g := acquire(tb, m)
	n, _ := memoryOf(g.in).ReadUint32Le(512)
	g.release()
	return n
}

// rule 17: whatever map and filter return, only their instance is lost.
func TestHooks_HostileAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		object []byte
		kind   abi.FailureKind
		want   string
	}{
		{"trap", echoLength(nil, echoTrap), abi.FailureTrap, "guest[map]: trap: wasm error: unreachable"},
		{"never returns", echoLength(nil, echoSpin), abi.FailureTimeout, "guest[map]: timeout: exceeded its time limit (timeout 100ms)"},
		{"outside memory", echoLength(nil, 1<<30), abi.FailureOutput, "does not lie in memory"},
		{"not msgpack", echoObject([]byte{0xc1}), abi.FailureOutput, "keys: msgpack type is not allowed here"},
		{"name is not UTF-8", echoObject([]byte("\x81\xa4keys\x91\x81\xa4name\xa2\xff\xfe")), abi.FailureOutput, "string is not UTF-8"},
		{"name is too long", echoObject(encodeKeys(abi.Key{Name: strings.Repeat("x", 300)})), abi.FailureOutput, "at most 253 bytes"},
		{"no name", echoObject([]byte("\x81\xa4keys\x91\x80")), abi.FailureOutput, "a key needs a name"},
		{"a million keys", echoObject(append([]byte("\x81\xa4keys\xdd\x00\x0f\x42\x40"), make([]byte, 1_000_000)...)), abi.FailureOutput, "1000000 elements, at most 10000"},
		{"keys that are not there", echoObject([]byte("\x81\xa4keys\xdd\xff\xff\xff\xff")), abi.FailureOutput, "msgpack ends too early"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := loaded(t, echo(t), Config{})
			other := acquire(t, m)
			if _, err := other.Reconcile(t.Context(), &abi.Request{Object: echoObject(nil)}); err != nil {
				t.Fatal(err)
			}
			if tc.kind == abi.FailureTimeout {
				hurry(m, 100*time.Millisecond)
			}
			_, err := m.Map(t.Context(), event(tc.object))
			hurry(m, share.DefaultTimeout)
			if ce := callError(t, err); ce.Kind != tc.kind || ce.Func != "map" || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s: %s", err, tc.kind, tc.want)
			}
			if _, err := m.Map(t.Context(), event(echoObject(nil))); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if n, _ := memoryOf(other.in).ReadUint32Le(512); n != 1 {
				t.Errorf("another instance had %d calls, want 1", n)
			}
		})
	}
}

func TestFilter_KeepsDropsAndFails(t *testing.T) {
	m := loaded(t, echo(t), Config{})
	for n, want := range map[uint32]bool{0: false, 1: true} {
		if got, err := m.Filter(t.Context(), event(echoLength(nil, n))); got != want || err != nil {
			t.Errorf("%d: got %v, %v", n, got, err)
		}
	}
	for n, want := range map[uint32]string{
		2:        "guest[filter]: output: filter returned 2: want 1 (keep) or 0 (drop)",
		echoTrap: "guest[filter]: trap", echoSpin: "guest[filter]: timeout",
	} {
		if n == echoSpin {
			hurry(m, 100*time.Millisecond)
		}
		keep, err := m.Filter(t.Context(), event(echoLength(nil, n)))
		hurry(m, share.DefaultTimeout)
		if ce := callError(t, err); keep || !strings.HasPrefix(ce.Error(), want) {
			t.Errorf("%d: got %v, %v", int32(n), keep, err)
		}
	}
}

// A module without the export, or whose manifest says that it is not real, says
// so, and finalize is not called on it either.
func TestHooks_Absent(t *testing.T) {
	hidden := withManifest(t, wasm.Echo, &abi.Manifest{Hooks: []string{abi.ExportErrorPolicy}})
	for name, module := range map[string][]byte{"not exported": wasm.Empty, "not real": hidden} {
		m := loaded(t, module, Config{})
		_, mapErr := m.Map(t.Context(), event(nil))
		_, filterErr := m.Filter(t.Context(), event(nil))
		_, finalizeErr := acquire(t, m).Finalize(t.Context(), request(0))
		for _, err := range []error{mapErr, filterErr, finalizeErr} {
			if !errors.Is(err, ErrNoHook) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if m.HasHook(abi.ExportMap) || m.HasHook(abi.ExportFilter) || m.Finalizes() {
			t.Errorf("%s: the module claims a hook", name)
		}
	}
	if m := loaded(t, echo(t), Config{}); !m.HasHook(abi.ExportMap) || !m.HasHook(abi.ExportFilter) || !m.Finalizes() {
		t.Error("the module denies its hooks")
	}
}

// What a guest reads is the event as the caller made it.
func TestHooks_EventOnTheWire(t *testing.T) {
	m := loaded(t, wasm.Calls, Config{})
	for _, ev := range []*abi.Event{
		event(sequence(nil)),
		{Kind: "K", Type: abi.EventListed, Key: abi.Key{Name: "n"}, New: sequence(nil)},
		{Kind: "K", Type: abi.EventDeleted, Key: abi.Key{Name: "n"}, Old: sequence(nil)},
	} {
		if keep, err := m.Filter(t.Context(), ev); !keep || err != nil {
			t.Fatal(keep, err)
		}
		g := acquire(t, m)
		want := encodeEvent(ev)
		if got, _ := memoryOf(g.in).Read(16384, uint32(len(want))); !cmp.Equal(want, got) {
			t.Errorf("%s: got %q, want %q", ev.Type, got, want)
		}
		g.release()
	}
}

// map and filter may log, read clocks, settings and the cache, and nothing else
// of the API.
func TestHooks_HostFunctions(t *testing.T) {
	api := &scriptedAPI{}
	m := loaded(t, wasm.Calls, Config{API: apiOf(api)})
	op := func(name string) hostCall { return hostCall{name, [4]uint32{16, 1, dstAt, 0}} }
	calls := []hostCall{
		op("config_get"), op("cache_get"), op("cache_list"), op("api_get"), op("api_create"), op("api_apply"), op("event_record"),
		{"budget", [4]uint32{0}},
	}
	for name, call := range map[string]func(*abi.Event) error{
		"map":    func(ev *abi.Event) error { _, err := m.Map(t.Context(), ev); return err },
		"filter": func(ev *abi.Event) error { _, err := m.Filter(t.Context(), ev); return err },
	} {
		api.calls = nil
		g := acquire(t, m)
		poke(t, g, 16, []byte{0x80})
		g.release()
		if err := call(event(sequence(calls))); err != nil {
			t.Fatal(err)
		}
		g = acquire(t, m)
		var got []string
		for i := range uint32(len(calls) - 1) {
			v, _ := memoryOf(g.in).ReadUint64Le(resultsAt + 8*i)
			s, _ := unpackResult(v)
			got = append(got, s.String())
		}
		left, _ := memoryOf(g.in).ReadUint64Le(resultsAt + 8*uint32(len(calls)-1))
		g.release()
		if want := "OK OK OK UNAVAILABLE UNAVAILABLE UNAVAILABLE UNAVAILABLE"; strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", name, got, want)
		}
		if limit := uint64(instance.HookTimeout.Milliseconds()); left == 0 || left > limit {
			t.Errorf("%s: %d ms are left, want at most %d", name, left, limit)
		}
		wantOps := []abi.Op{abi.OpCacheGet, abi.OpCacheList}
		var gotOps []abi.Op
		for _, c := range api.calls {
			gotOps = append(gotOps, c.op)
		}
		if diff := cmp.Diff(wantOps, gotOps); diff != "" {
			t.Errorf("%s: the API served %s", name, diff)
		}
	}
}

// rule 16: mapping does not wait for reconciles that hold every guest, and a
// hook that waits holds up no reconcile; two hooks take turns.
func TestHooks_HaveASlotOfTheirOwn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		unblock := make(chan struct{})
		api := &scriptedAPI{f: func(ctx context.Context, op abi.Op, _ []byte) abi.Response {
			if op == abi.OpCacheGet {
				<-unblock
			}
			return abi.Response{Body: []byte{0xc0}}
		}}
		m := loaded(t, wasm.Calls, Config{Concurrency: 1, API: apiOf(api)})
		busy := acquire(t, m)
		if _, err := m.Map(t.Context(), event(sequence(nil))); err != nil {
			t.Fatal(err)
		}
		slow := sequence([]hostCall{{"cache_get", [4]uint32{0, 0, 0, 0}}})
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := m.Map(t.Context(), event(slow)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		play(t, busy, hostCall{"log_level", [4]uint32{}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Filter(ctx, event(sequence(nil))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second hook did not wait: %v", err)
		}
		close(unblock)
		wg.Wait()
		if _, err := m.Filter(t.Context(), event(sequence(nil))); err != nil {
			t.Error(err)
		}
	})
}

func TestHooks_AfterClose(t *testing.T) {
	m := loaded(t, echo(t), Config{})
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Map(t.Context(), event(echoObject(nil))); !errors.Is(err, ErrClosed) {
		t.Errorf("Map: %v", err)
	}
	if err := m.Configure(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Configure: %v", err)
	}
}

// An event over the size of a message is refused without troubling the guest.
func TestHooks_EventOverTheCap(t *testing.T) {
	m := loaded(t, echo(t), Config{})
	ev := event(make([]byte, abi.MaxBytes/2))
	ev.Old = ev.New
	if _, err := m.Map(t.Context(), ev); !errors.Is(err, abi.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if calls := echoCalls(t, m); calls != 0 {
		t.Errorf("the guest was called %d times", calls)
	}
}

// Results that declare something arrive whole; error_policy must not declare.
func TestDeclared_CrossesTheWall(t *testing.T) {
	g := acquire(t, loaded(t, echo(t), Config{}))
	want := abi.Result{
		Action:   abi.Action{Requeue: true, After: time.Second},
		Declared: &abi.Declared{Apply: [][]byte{benchObject(), {0x80}}, Prune: true, Force: true, Status: encoded(map[string]any{"ready": true})},
	}
	object := echoObject(encoded(map[string]any{
		"action": "requeue", "after_ms": 1000, "apply": []any{mustDecode(benchObject()), map[string]any{}},
		"prune": true, "force": true, "status": map[string]any{"ready": true},
	}))
	for name, call := range map[string]func(context.Context, *abi.Request) (abi.Result, error){"reconcile": g.Reconcile, "finalize": g.Finalize} {
		got, err := call(t.Context(), &abi.Request{Object: object})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// What came back does not change with the guest's memory.
		if _, err := call(t.Context(), &abi.Request{Object: echoObject(make([]byte, 16))}); err == nil {
			t.Errorf("%s: zeros are no result", name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	_, err := g.ErrorPolicy(t.Context(), &abi.Failure{Object: object})
	if ce := callError(t, err); ce.Kind != abi.FailureOutput || !strings.Contains(err.Error(), "error_policy declares objects") {
		t.Errorf("error_policy: %v", err)
	}
	failed := encoded(map[string]any{"error": map[string]any{"class": "", "message": "m"}, "prune": true})
	_, err = g.Reconcile(t.Context(), &abi.Request{Object: echoObject(failed)})
	if ce := callError(t, err); ce.Kind != abi.FailureOutput || !strings.Contains(err.Error(), "in a result with an error") {
		t.Errorf("an error beside prune: %v", err)
	}
}
