// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// hostCall is one step of the program that the guest wasm.Calls runs.
type hostCall struct {
	name string
	args [4]uint32
}

// Where the guest keeps what it uses; the rest of its first 16 KiB is free.
const (
	resultsAt = 512
	requestAt = 1024 // requests of operations
	dstAt     = 8192 // answers
	lineAt    = 1 << 17
	outside   = 4 * share.PageSize
)

var callNumbers = map[string]uint32{
	"api_get": 0, "api_create": 1, "api_apply": 2, "cache_get": 3, "cache_list": 4, "event_record": 5, "config_get": 6, "teleport": 7,
	"take": 8, "log": 9, "log_level": 10, "metric": 11, "cancelled": 12, "budget": 13, "clock_time_get": 14, "random_get": 15,
}

func sequence(calls []hostCall) []byte {
	var b []byte
	for _, c := range calls {
		b = binary.LittleEndian.AppendUint32(b, callNumbers[c.name])
		for _, a := range c.args {
			b = binary.LittleEndian.AppendUint32(b, a)
		}
	}
	return binary.LittleEndian.AppendUint32(b, uint32(len(calls)))
}

// play runs a program and returns its results.
func play(tb testing.TB, g *lease, calls ...hostCall) []int64 {
	tb.Helper()
	req := request(0)
	req.Object = sequence(calls)
	if _, err := g.Reconcile(tb.Context(), req); err != nil {
		tb.Fatal(err)
	}
	out := make([]int64, len(calls))
	for i := range out {
		v, _ := memoryOf(g.in).ReadUint64Le(resultsAt + 8*uint32(i))
		out[i] = int64(v)
	}
	return out
}

// poke writes into the guest's memory between two calls.
func poke(tb testing.TB, g *lease, ptr uint32, b []byte) {
	tb.Helper()
	if !memoryOf(g.in).Write(ptr, b) {
		tb.Fatalf("%d bytes at %d do not lie in memory", len(b), ptr)
	}
}

// statusText shows the result of an operation.
func statusText(v int64) string {
	s, n := unpackResult(uint64(v))
	return fmt.Sprintf("%s %d", s, n)
}

// written checks that exactly the bytes of want stand at ptr, between sentinels
// that fill left there.
func written(tb testing.TB, g *lease, ptr uint32, want []byte) {
	tb.Helper()
	b, _ := memoryOf(g.in).Read(ptr-4, uint32(len(want))+8)
	if wantAll := "????" + string(want) + "????"; string(b) != wantAll {
		tb.Errorf("memory at %d: got %q, want %q", ptr-4, b, wantAll)
	}
}

func fill(tb testing.TB, g *lease) {
	tb.Helper()
	poke(tb, g, dstAt-64, bytes.Repeat([]byte("?"), 1024))
}

// answerCase is a program of operations and takes, what they return, and what
// stands at dstAt afterwards.
type answerCase struct {
	name  string
	calls []hostCall
	want  string
	wrote []byte
}

// answerCases are about one answer, body, of 22 bytes.
func answerCases(body []byte) []answerCase {
	n := uint32(len(body))
	get := func(cap uint32) hostCall { return hostCall{"api_get", [4]uint32{requestAt, 4, dstAt, cap}} }
	take := func(dst, off, cap uint32) hostCall { return hostCall{"take", [4]uint32{dst, off, cap}} }
	return []answerCase{
		{"fits exactly", []hostCall{get(n)}, "OK 22", body},
		{"HTTP status", []hostCall{{"api_create", [4]uint32{requestAt, 4, dstAt, 100}}}, "409 22", body},
		{"one byte short", []hostCall{get(n - 1)}, "OK 22", nil},
		{"no room, then take all", []hostCall{get(0), take(dstAt, 0, n)}, "OK 22, 22", body},
		{"take in parts", []hostCall{get(0), take(dstAt, 0, 10), take(dstAt+10, 10, 100), take(dstAt, n, 5)}, "OK 22, 10, 12, 0", body},
		{"take after it fitted", []hostCall{get(n), take(dstAt, 0, n)}, "OK 22, 22", body},
		{"take twice", []hostCall{get(0), take(dstAt, 0, n), take(dstAt, 0, n)}, "OK 22, 22, 22", body},
		{"take off the end", []hostCall{get(0), take(dstAt, 0xffffffff, 4)}, "OK 22, 0", nil},
		{"take outside memory", []hostCall{get(0), take(outside-4, 0, 5), take(0xfffffff0, 0, 0x20)}, "OK 22, -3, -3", nil},
		{"take without an answer", []hostCall{take(dstAt, 0, 5)}, "-3", nil},
		{"destination outside memory", []hostCall{{"api_get", [4]uint32{requestAt, 4, outside - 1, 2}}, take(dstAt, 0, 4)}, "BAD_REQUEST 0, -3", nil},
	}
}

// The golden call log: what each host function answers and writes.
func TestHostFunctions_OperationsAndTake(t *testing.T) {
	body := encoded("the answer of the API")
	api := &scriptedAPI{f: func(_ context.Context, op abi.Op, _ []byte) abi.Response {
		if op == abi.OpAPICreate {
			return abi.Response{Status: 409, Body: body}
		}
		return abi.Response{Body: body}
	}}
	g := acquire(t, loaded(t, wasm.Calls, Config{API: apiOf(api)}))
	poke(t, g, requestAt, []byte{0x81, 0xa1, 'k', 0x01})
	for _, tc := range answerCases(body) {
		fill(t, g)
		api.calls = nil
		results := play(t, g, tc.calls...)
		var got []string
		for i, r := range results {
			if tc.calls[i].name == "take" {
				got = append(got, fmt.Sprint(r))
			} else {
				got = append(got, statusText(r))
			}
		}
		if strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, strings.Join(got, ", "), tc.want)
		}
		written(t, g, dstAt, tc.wrote)
		for _, c := range api.calls {
			if !bytes.Equal(c.req, []byte{0x81, 0xa1, 'k', 0x01}) {
				t.Errorf("%s: the API got %q", tc.name, c.req)
			}
		}
		// The API runs once for each operation that can answer, and never for
		// a take: no object is created twice.
		want := 1
		if strings.HasPrefix(tc.name, "take without") || strings.HasPrefix(tc.name, "destination") {
			want = 0
		}
		if len(api.calls) != want {
			t.Errorf("%s: the API was called %d times, want %d", tc.name, len(api.calls), want)
		}
	}
}

// What is held does not outlive the entry call.
func TestHostFunctions_HeldAnswerEndsWithTheCall(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Calls, Config{API: apiOf(&scriptedAPI{f: func(context.Context, abi.Op, []byte) abi.Response {
		return abi.Response{Body: []byte{0x01}}
	}})}))
	play(t, g, hostCall{"api_get", [4]uint32{requestAt, 1, dstAt, 0}})
	if got := play(t, g, hostCall{"take", [4]uint32{dstAt, 0, 1}}); got[0] != int64(abi.StatusBadRequest) {
		t.Errorf("take in the next call: got %d", got[0])
	}
}

// Every refusal of the host's own has a body that says why.
func TestHostFunctions_Refusals(t *testing.T) {
	big := &scriptedAPI{f: func(context.Context, abi.Op, []byte) abi.Response {
		return abi.Response{Body: make([]byte, abi.MaxBytes+1)}
	}}
	panics := &scriptedAPI{f: func(context.Context, abi.Op, []byte) abi.Response { panic("oops") }}
	for _, tc := range []struct {
		name   string
		api    *scriptedAPI
		call   hostCall
		status abi.Status
		reason string
		text   string
	}{
		{"no API", nil, hostCall{"api_get", [4]uint32{requestAt, 4, dstAt, 512}}, abi.StatusUnsupported, "Unsupported", "does not serve api_get"},
		{"cache without an API", nil, hostCall{"cache_get", [4]uint32{requestAt, 4, dstAt, 512}}, abi.StatusUnsupported, "Unsupported", "does not serve cache_get"},
		{"unknown import", big, hostCall{"teleport", [4]uint32{requestAt, 4, dstAt, 512}}, abi.StatusUnsupported, "Unsupported", "does not serve teleport"},
		{"request outside memory", big, hostCall{"api_get", [4]uint32{outside - 3, 4, dstAt, 512}}, abi.StatusBadRequest, "BadPointer", "request block of 4 bytes at 262141 does not lie in memory"},
		{"pointers that wrap around", big, hostCall{"api_get", [4]uint32{0xffffffff, 0xffffffff, dstAt, 512}}, abi.StatusBadRequest, "BadPointer", "request block"},
		{"answer over the cap", big, hostCall{"api_get", [4]uint32{requestAt, 4, dstAt, 512}}, abi.StatusTooLarge, "TooLarge", "answer of api_get is 4194305 bytes"},
		{"panic", panics, hostCall{"api_get", [4]uint32{requestAt, 4, dstAt, 512}}, abi.StatusInternal, "Internal", "internal error of the host"},
		{"config_get of nonsense", big, hostCall{"config_get", [4]uint32{requestAt, 4, dstAt, 512}}, abi.StatusBadRequest, "BadRequest", "config_get"},
	} {
		cfg := Config{}
		if tc.api != nil {
			cfg.API = apiOf(tc.api)
		}
		g := acquire(t, loaded(t, wasm.Calls, cfg))
		poke(t, g, requestAt, []byte{0xc1, 0xc1, 0xc1, 0xc1})
		status, n := unpackResult(uint64(play(t, g, tc.call)[0]))
		b, _ := memoryOf(g.in).Read(dstAt, n)
		body, err := abi.DecodeObject(b)
		if status != tc.status || err != nil || body["code"] != int64(tc.status) || body["reason"] != tc.reason || !strings.Contains(fmt.Sprint(body["message"]), tc.text) {
			t.Errorf("%s: got %s %v, want %s %s: %s", tc.name, status, body, tc.status, tc.reason, tc.text)
		}
	}
}

func TestHostFunctions_Config(t *testing.T) {
	module := withManifest(t, wasm.Calls, &abi.Manifest{Config: map[string]string{"color": "blue", "size": "1"}})
	g := acquire(t, loaded(t, module, Config{Settings: map[string]string{"size": "2"}}))
	for req, want := range map[string]any{
		"\x81\xa3key\xa4size":  "2",
		"\x81\xa3key\xa5color": "blue",
		"\x81\xa3key\xa4none":  nil,
		"\x80":                 map[string]any{"color": "blue", "size": "2"},
	} {
		poke(t, g, requestAt, []byte(req))
		status, n := unpackResult(uint64(play(t, g, hostCall{"config_get", [4]uint32{requestAt, uint32(len(req)), dstAt, 512}})[0]))
		b, _ := memoryOf(g.in).Read(dstAt, n)
		got, err := abi.DecodeValue(b)
		if diff := cmp.Diff(want, got); status != abi.StatusOK || err != nil || diff != "" {
			t.Errorf("%q: %s %v %s", req, status, err, diff)
		}
	}
}

func TestHostFunctions_BudgetCancelledMetric(t *testing.T) {
	m := loaded(t, wasm.Calls, Config{Limits: share.Limits{Timeout: time.Hour, HostCalls: 2}})
	g := acquire(t, m)
	budget := func(kind uint32) hostCall { return hostCall{"budget", [4]uint32{kind}} }
	op := hostCall{"config_get", [4]uint32{requestAt, 1, dstAt, 0}}
	poke(t, g, requestAt, []byte{0x80})
	got := play(t, g, budget(1), op, budget(1), op, op, budget(1), budget(2), budget(77), budget(0),
		hostCall{"cancelled", [4]uint32{}}, hostCall{"metric", [4]uint32{0, 0, 4}}, hostCall{"metric", [4]uint32{0, outside, 4}})
	if left := got[8]; left > 3600_000 || left < 3500_000 {
		t.Errorf("%d ms are left, want about an hour", left)
	}
	if s, _ := unpackResult(uint64(got[4])); s != abi.StatusBudget {
		t.Errorf("third operation of two: %s", s)
	}
	got[1], got[3], got[4], got[8] = 0, 0, 0, 0
	if diff := cmp.Diff([]int64{2, 0, 1, 0, 0, 0, -1, -1, 0, 0, -1, -3}, got); diff != "" {
		t.Error(diff)
	}
	m.Drain()
	if got := play(t, g, hostCall{"cancelled", [4]uint32{}}); got[0] != 1 {
		t.Errorf("cancelled while draining: %d", got[0])
	}
}

// Outside of an entry call there are no operations, and nothing is cancelled or
// bounded.
func TestHostFunctions_OutsideOfAnEntryCall(t *testing.T) {
	inThisProcess(t)
	var log bytes.Buffer
	cfg := Config{API: apiOf(nil), Clock: operation.Clock{Now: func() time.Time { return time.UnixMilli(7) }}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	g := acquire(t, loaded(t, wasm.Init, cfg))
	var got []int64
	for i := range uint32(7) {
		v, _ := memoryOf(g.in).ReadUint64Le(resultsAt + 8*i)
		got = append(got, int64(v))
	}
	if s, _ := unpackResult(uint64(got[0])); s != abi.StatusUnavailable {
		t.Errorf("api_get: %s", s)
	}
	if diff := cmp.Diff([]int64{-7, 0, -1, -7, 0, 7_000_000}, got[1:]); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(log.String(), "msg=starting") {
		t.Errorf("log: %s", log.String())
	}
}

func TestHostFunctions_Log(t *testing.T) {
	var log bytes.Buffer
	strip := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	cfg := Config{Name: "c", Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: strip}))}
	g := acquire(t, loaded(t, wasm.Calls, cfg))
	texts := []string{"plain text", "\x84\xa3msg\xa3map\xa1n\x02\xa6object\xa5false\xa4from\xa4host", "bad \xff utf8", strings.Repeat("x", operation.MaxLine+5), "\x81\xc1"}
	ptr := uint32(requestAt)
	var calls []hostCall
	for i, s := range texts {
		poke(t, g, ptr, []byte(s))
		calls = append(calls, hostCall{"log", [4]uint32{uint32(i % 2 * 4), ptr, uint32(len(s))}})
		ptr += uint32(len(s))
	}
	debug := int32(-4)
	calls = append(calls, hostCall{"log", [4]uint32{uint32(debug), requestAt, 5}}, hostCall{"log", [4]uint32{8, outside, 5}}, hostCall{"log_level", [4]uint32{}})
	got := play(t, g, calls...)
	if level := got[len(got)-1]; level != 0 {
		t.Errorf("log_level: got %d, want 0", level)
	}
	where := " controller=c revision=1 "
	run := "object=default/web reconcile_id=r1\n"
	guest := "from=guest " + run
	host := run
	if defaultIsolation != nil {
		host = guest // the process of a guest may say anything
	}
	want := "level=INFO msg=\"plain text\"" + where + guest +
		"level=WARN msg=map" + where + "guest_from=host n=2 guest_object=false " + guest +
		"level=INFO msg=\"bad \uFFFD utf8\"" + where + guest +
		"level=WARN msg=" + strings.Repeat("x", operation.MaxLine) + where + guest +
		"level=INFO msg=\"\uFFFD\"" + where + guest +
		"level=WARN msg=\"log: message block of 5 bytes at 262144 does not lie in memory\"" + where + host
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Error(diff)
	}
}

// A host function that sits out the deadline and then returns does not make the
// call succeed, and the API's context ends with the call's time.
func TestHostFunctions_DeadlineInsideTheAPI(t *testing.T) {
	api := &scriptedAPI{f: func(ctx context.Context, _ abi.Op, _ []byte) abi.Response {
		<-ctx.Done()
		return abi.Response{Body: []byte{0xc0}}
	}}
	m := loaded(t, wasm.Calls, Config{API: apiOf(api)})
	g := acquire(t, m)
	req := request(0)
	req.Object = sequence([]hostCall{{"api_get", [4]uint32{requestAt, 1, dstAt, 8}}})
	hurry(m, 30*time.Millisecond)
	_, err := g.Reconcile(t.Context(), req)
	hurry(m, share.DefaultTimeout)
	if ce := callError(t, err); ce.Kind != abi.FailureTimeout {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	api.f = func(ctx context.Context, _ abi.Op, _ []byte) abi.Response {
		cancel()
		<-ctx.Done()
		return abi.Response{}
	}
	if _, err := g.Reconcile(ctx, req); err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("cancelled in a host call: got %v", err)
	}
}
