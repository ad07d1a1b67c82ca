// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

func TestReconcile_Results(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Modes, Config{}))
	for mode, want := range map[byte]abi.Result{
		0: {},
		8: {Error: &abi.ResultError{Class: abi.ErrorPermanent, Message: "no luck", Reason: "NoLuck"}},
		9: {Action: abi.Action{Requeue: true, After: 5 * time.Second}},
	} {
		got, err := g.Reconcile(t.Context(), request(mode))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("mode %d: %v %s", mode, err, diff)
		}
	}
	if _, err := g.Reconcile(t.Context(), request(15)); err != nil {
		t.Errorf("a guest that copes with a refused grow: %v", err)
	}
}

// rule 17: a trap, a timeout, running out of memory and bad output are errors
// of the one call, each of its kind; the instance is discarded, and the next
// call of the same lease, error_policy's, gets a fresh one.
func TestReconcile_FailureKinds(t *testing.T) {
	cfg := Config{Limits: share.Limits{Memory: 128 * share.PageSize}}
	m := loaded(t, wasm.Modes, cfg)
	other := acquire(t, m)
	for _, tc := range []struct {
		mode byte
		kind abi.FailureKind
		want string
	}{
		{1, abi.FailureTrap, "guest[reconcile]: trap: wasm error: unreachable"},
		{3, abi.FailureTrap, "guest[reconcile]: trap: stack overflow"},
		{4, abi.FailureMemory, "guest[reconcile]: memory: exceeded its memory limit (memory 8Mi): wasm error: unreachable"},
		{5, abi.FailureOutput, "guest[reconcile]: output: result of 16 bytes at 65530 does not lie in memory of 65536 bytes"},
		{6, abi.FailureOutput, "guest[reconcile]: output: result: msgpack type is not allowed here"},
		{7, abi.FailureOutput, "guest[reconcile]: output: result: x: msgpack nests deeper than 128"},
		{10, abi.FailureOutput, "guest[reconcile]: output: result of 5242880 bytes is longer than it may be (result_bytes 4Mi)"},
		{13, abi.FailureOutput, "guest[reconcile]: output: result: after_ms: msgpack type is not allowed here: -1 ms is negative"},
		{14, abi.FailureTrap, "guest[reconcile]: trap: wasm error: integer divide by zero"},
	} {
		g, release, err := m.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // calls that count up in this instance
			if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
				t.Fatal(err)
			}
		}
		_, err = g.Reconcile(t.Context(), request(tc.mode))
		if ce := callError(t, err); ce.Kind != tc.kind || ce.Func != "reconcile" || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("mode %d: got kind %q, %v; want %q, %s", tc.mode, ce.Kind, err, tc.kind, tc.want)
		}
		res, err := g.ErrorPolicy(t.Context(), &abi.Failure{Kind: tc.kind, Attempt: 1})
		if want := time.Millisecond; err != nil || res.Action.After != want { // the first call of its instance
			t.Errorf("mode %d: error_policy ran on a used instance or not at all: %+v, %v", tc.mode, res, err)
		}
		release()
		release() // a second time is harmless
	}
	if _, err := other.Reconcile(t.Context(), request(11)); err != nil {
		t.Errorf("another instance was harmed: %v", err)
	}
}

// rule 17: an error that the guest itself reports costs no instance.
func TestReconcile_ErrorResultKeepsTheInstance(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Modes, Config{}))
	if res, err := g.Reconcile(t.Context(), request(8)); err != nil || res.Error == nil {
		t.Fatalf("%+v %v", res, err)
	}
	res, err := g.ErrorPolicy(t.Context(), &abi.Failure{Kind: abi.FailureError})
	if err != nil || res.Action.After != 2*time.Millisecond {
		t.Errorf("got %+v, %v; want the same instance's second call", res, err)
	}
}

// rule 19: a module without error_policy says so; one that fails in it fails
// with an error of its own, and the lease goes on.
func TestErrorPolicy_AbsentOrFailing(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Empty, Config{}))
	if _, err := g.ErrorPolicy(t.Context(), &abi.Failure{}); !errors.Is(err, abi.ErrNoErrorPolicy) {
		t.Errorf("absent: %v", err)
	}
	hidden := withManifest(t, wasm.Modes, &abi.Manifest{Hooks: []string{"finalize"}})
	if _, err := acquire(t, loaded(t, hidden, Config{})).ErrorPolicy(t.Context(), &abi.Failure{}); !errors.Is(err, abi.ErrNoErrorPolicy) {
		t.Errorf("exported, but not among the hooks: %v", err)
	}
	g = acquire(t, loaded(t, wasm.Modes, Config{}))
	_, err := g.ErrorPolicy(t.Context(), &abi.Failure{Object: []byte{14}})
	if ce := callError(t, err); ce.Kind != abi.FailureTrap || ce.Func != "error_policy" {
		t.Errorf("trap: %v", err)
	}
	if _, err := g.Reconcile(t.Context(), request(0)); err != nil {
		t.Errorf("after that: %v", err)
	}
}

func TestReconcile_BadBuffers(t *testing.T) {
	m := loaded(t, wasm.Buffers, Config{Concurrency: 8})
	for mode, tc := range map[int]struct {
		kind abi.FailureKind
		want string
	}{
		1: {abi.FailureTrap, "wasm error: unreachable"},
		2: {abi.FailureOutput, "buffer refused a request of"},
		3: {abi.FailureOutput, "buffer returned 1028: want 8-byte alignment"},
		4: {abi.FailureOutput, "buffer returned 4294967288, but"},
		5: {abi.FailureOutput, "buffer returned 65528, but"},
		6: {abi.FailureTimeout, "exceeded its time limit"},
	} {
		req := request(0)
		req.Object = make([]byte, mode<<12)
		g := acquire(t, m)
		if tc.kind == abi.FailureTimeout {
			hurry(m, 100*time.Millisecond)
		}
		_, err := g.Reconcile(t.Context(), req)
		hurry(m, share.DefaultTimeout)
		if ce := callError(t, err); ce.Kind != tc.kind || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("mode %d: got %v; want %s: %s", mode, err, tc.kind, tc.want)
		}
	}
}

// A request that no guest may get is refused before the guest is troubled.
func TestReconcile_RequestOverTheCap(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Empty, Config{}))
	req := request(0)
	req.Object = make([]byte, abi.MaxBytes)
	if _, err := g.Reconcile(t.Context(), req); !errors.Is(err, abi.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	req.Object = make([]byte, abi.MaxBytes-4096) // the guest grows its memory for it
	if _, err := g.Reconcile(t.Context(), req); err != nil {
		t.Errorf("a request within the cap: %v", err)
	}
}

// rule 17, timeout: a guest that spins is stopped, in real time.
func TestReconcile_SpinningGuestTimesOut(t *testing.T) {
	m := loaded(t, wasm.Modes, Config{})
	g := acquire(t, m)
	hurry(m, 50*time.Millisecond)
	start := time.Now()
	_, err := g.Reconcile(t.Context(), request(2))
	if ce := callError(t, err); ce.Kind != abi.FailureTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took < 50*time.Millisecond || took > time.Minute {
		t.Errorf("took %v, want about 50ms", took)
	}
	g = acquire(t, loaded(t, wasm.Modes, Config{}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = g.Reconcile(ctx, request(2))
	if ce := callError(t, err); ce.Kind != abi.FailureTimeout {
		t.Errorf("the caller's deadline: got %v", err)
	}
}

// The end of the caller's context interrupts a guest, and is no fault of it.
func TestReconcile_Cancelled(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Modes, Config{}))
	stop := errors.New("second signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(stop) })
	_, err := g.Reconcile(ctx, request(2))
	var ce *abi.CallError
	if !errors.Is(err, stop) || errors.As(err, &ce) {
		t.Errorf("got %v, want the cause and no CallError", err)
	}
	if _, err := g.Reconcile(ctx, request(0)); !errors.Is(err, stop) {
		t.Errorf("with a context that has ended: %v", err)
	}
	if res, err := g.Reconcile(t.Context(), request(11)); err != nil || res.Action.After != time.Millisecond {
		t.Errorf("afterwards: %+v %v, want a fresh instance", res, err)
	}
}

// A guest that recurses forever costs heap only while its instance lives.
func TestReconcile_RecursionIsBounded(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Modes, Config{}))
	before := heap()
	_, err := g.Reconcile(t.Context(), request(3))
	if ce := callError(t, err); ce.Kind != abi.FailureTrap {
		t.Fatal(err)
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("%d bytes of heap are still in use", grown)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// Tables are memory too, though not of the linear kind.
func TestReconcile_TablesAreBounded(t *testing.T) {
	res, err := acquire(t, loaded(t, wasm.Tables, Config{})).Reconcile(t.Context(), request(0))
	if got := res.Action.After.Milliseconds(); err != nil || got < 4096 || got > 1<<17 {
		t.Errorf("table has %d entries, %v; the limit is %d", got, err, 1<<17)
	}
}

// Keys of results that the host does not know are counted, and logged once.
func TestReconcile_UnknownKeysAreCounted(t *testing.T) {
	var log bytes.Buffer
	m := loaded(t, wasm.Modes, Config{Name: "c", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	g := acquire(t, m)
	for range 3 {
		if _, err := g.Reconcile(t.Context(), request(12)); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.UnknownKeys(); got != 6 {
		t.Errorf("counted %d, want 6", got)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), `keys="[what more]"`) {
		t.Errorf("logged %d lines, want one that names the keys: %s", n, log.String())
	}
}

// What a guest reads is what the caller sent, with the host's part filled in.
func TestReconcile_RequestOnTheWire(t *testing.T) {
	api := &scriptedAPI{}
	now := time.UnixMilli(1767225600123)
	cfg := Config{API: apiOf(api), Clock: operation.Clock{Now: func() time.Time { return now }}, Limits: share.Limits{Timeout: time.Minute}}
	g := acquire(t, loaded(t, wasm.Spy, cfg))
	req := request(0)
	req.Object = benchObject()
	req.DryRun, req.Caps = true, []string{"lies"} // not the caller's to say
	if _, err := g.Reconcile(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	want := *req
	want.ConfigGen, want.DryRun, want.Deadline = 1, false, now.Add(time.Minute)
	want.Caps = []string{
		"api_get", "api_list", "api_create", "api_update", "api_patch", "api_apply", "api_delete", "cache_get", "cache_list", "event_record", "config_get",
		"declare", "finalize", "map", "filter", "configure", "opaque", "admission", "convert",
	}
	f := &abi.Failure{ID: "r1", Object: []byte{7}, Kind: abi.FailureTrap, Attempt: 2, Error: abi.ResultError{Class: abi.ErrorTransient, Message: "m"}}
	if _, err := g.ErrorPolicy(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	wantCalls := []apiCall{{abi.OpAPIGet, abi.AppendRequest(nil, &want)}, {abi.OpAPIList, append(abi.AppendFailureHead(nil, f), f.Object...)}}
	if diff := cmp.Diff(wantCalls, api.calls, cmp.AllowUnexported(apiCall{})); diff != "" {
		t.Error(diff)
	}
}

func TestLease_UseAfterRelease(t *testing.T) {
	m := loaded(t, wasm.Modes, Config{})
	g, release, err := m.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release()
	if _, err := g.Reconcile(t.Context(), request(0)); !errors.Is(err, errReleased) {
		t.Errorf("Reconcile: %v", err)
	}
	if _, err := g.ErrorPolicy(t.Context(), &abi.Failure{}); !errors.Is(err, errReleased) {
		t.Errorf("ErrorPolicy: %v", err)
	}
	if g.Revision() != 1 {
		t.Errorf("revision %d", g.Revision())
	}
}
