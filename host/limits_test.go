// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/operation"
	"github.com/wasmctl/wasmctl/host/share"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// limitOf is the *abi.LimitError in err; the test ends where there is none.
func limitOf(tb testing.TB, err error) *abi.LimitError {
	tb.Helper()
	var le *abi.LimitError
	if !errors.As(err, &le) || !errors.Is(err, abi.ErrLimit) {
		tb.Fatalf("got error %v, want a LimitError", err)
	}
	return le
}

func TestLimitsFor_UnitsAndWarnings(t *testing.T) {
	asks := &abi.Manifest{Limits: &abi.Limits{Memory: 10*share.PageSize + 5, Timeout: 1500, HostCalls: share.DefaultHostCalls + 1}}
	l, more := share.Limits{}.For(asks)
	if l.Memory != 10*share.PageSize || l.HighWater() != 5*share.PageSize || l.Timeout != 1500*time.Millisecond || l.HostCalls != share.DefaultHostCalls {
		t.Errorf("got %+v", l)
	}
	if diff := cmp.Diff([]abi.LimitName{abi.LimitHostCalls}, more); diff != "" {
		t.Error(diff)
	}
	l = Config{Limits: share.Limits{Timeout: time.Second, Memory: 5 * share.PageSize}}.LimitsFor(asks)
	if l.Timeout != time.Second || l.Memory != 5*share.PageSize {
		t.Errorf("config: got %+v", l)
	}
	l = Config{}.LimitsFor(&abi.Manifest{Limits: &abi.Limits{Timeout: 1 << 60}})
	if l.Timeout != share.DefaultTimeout {
		t.Errorf("a timeout that overflows: got %v", l.Timeout)
	}
	var log bytes.Buffer
	loaded(t, withManifest(t, wasm.Empty, asks), Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if !strings.Contains(log.String(), "limit=host_calls asked=10001 given=10000") {
		t.Errorf("the log does not say what is refused: %s", &log)
	}
}

// Each limit that ends a call: the error names it and its value, and it is
// counted.
func TestLimits_ErrorsNameThem(t *testing.T) {
	for _, tc := range []struct {
		name   abi.LimitName
		mode   byte
		limits share.Limits
		kind   abi.FailureKind
		value  string
		fuel   bool
	}{
		{abi.LimitMemory, 4, share.Limits{Memory: 4 * share.PageSize}, abi.FailureMemory, "256Ki", false},
		{abi.LimitTimeout, 2, share.Limits{}, abi.FailureTimeout, "20ms", false},
		{abi.LimitFuel, 2, share.Limits{Fuel: 1000}, abi.FailureTimeout, "1000", true},
		{abi.LimitStack, 3, share.Limits{Stack: 100_000}, abi.FailureTrap, "100000", true},
		{abi.LimitResultBytes, 10, share.Limits{}, abi.FailureOutput, "4Mi", false},
	} {
		m := loaded(t, wasm.Modes, Config{Limits: tc.limits})
		g := acquire(t, m)
		if tc.name == abi.LimitTimeout {
			hurry(m, 20*time.Millisecond)
		}
		_, err := g.Reconcile(t.Context(), request(tc.mode))
		ce, le := callError(t, err), limitOf(t, err)
		want := fmt.Sprintf("(%s %s)", tc.name, tc.value)
		if ce.Kind != tc.kind || le.Limit != tc.name || !strings.Contains(err.Error(), want) || le.Waited {
			t.Errorf("%s: got kind %s, %v; want %s, %s", tc.name, ce.Kind, err, tc.kind, want)
		}
		if got := m.LimitStats(); got[tc.name] != 1 || len(got) != 1 {
			t.Errorf("%s: counted %v", tc.name, got)
		}
		if got := m.Recycled(); got[string(tc.kind)] != 1 || len(got) != 1 {
			t.Errorf("%s: replaced %v", tc.name, got)
		}
	}
}

func TestLimits_ResultAtItsEdge(t *testing.T) {
	g := acquire(t, loaded(t, wasm.Modes, Config{Limits: share.Limits{Memory: 8 << 20}}))
	if _, err := g.Reconcile(t.Context(), request(15)); err != nil { // grows to the limit
		t.Fatal(err)
	}
	if b, err := inGuest(g.in).Result(share.ResultBytes); err != nil || len(b) != share.ResultBytes {
		t.Errorf("a result at the limit: %d bytes, %v", len(b), err)
	}
	if _, err := inGuest(g.in).Result(share.ResultBytes + 1); limitOf(t, err).Limit != abi.LimitResultBytes {
		t.Errorf("a result beyond the limit: %v", err)
	}
}

// The depth of recursion, and with it the memory of the host that it takes, goes
// by the limit, and a manifest can lower it.
func TestLimits_StackBoundsTheHostsMemory(t *testing.T) {
	module := withManifest(t, wasm.Modes, &abi.Manifest{Limits: &abi.Limits{Stack: 64 << 10}})
	m := loaded(t, module, Config{Limits: share.Limits{Stack: 8 << 20}})
	g := acquire(t, m)
	before := allocated()
	_, err := g.Reconcile(t.Context(), request(3))
	if le := limitOf(t, err); le.Limit != abi.LimitStack || le.Value != "64Ki" {
		t.Error(err)
	}
	if grown := allocated() - before; grown > 2<<20 {
		t.Errorf("%d bytes were allocated for 64 KiB of stack", grown)
	}
}

// A timeout in which an operation was waited for is not one of the guest's own.
func TestLimits_TimeoutSaysThatItWaited(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		api := &scriptedAPI{f: func(ctx context.Context, _ abi.Op, _ []byte) abi.Response {
			<-ctx.Done()
			return abi.Response{}
		}}
		_, err := acquire(t, loaded(t, wasm.Spy, Config{API: apiOf(api)})).Reconcile(t.Context(), request(0))
		if le := limitOf(t, err); le.Limit != abi.LimitTimeout || !le.Waited {
			t.Errorf("got %+v", le)
		}
	})
}

// One in which the guest slept is.
func TestLimits_SleepingIsNoWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		_, err := acquire(t, loaded(t, wasm.WASI, Config{})).Reconcile(t.Context(), request(6)) // sleeps for an hour
		if le := limitOf(t, err); le.Limit != abi.LimitTimeout || le.Waited {
			t.Errorf("got %+v", le)
		}
	})
}

// refusedWith plays operations and returns the status of the last one and what
// its answer says.
func refusedWith(t *testing.T, g *lease, calls ...hostCall) (status string, body string) {
	t.Helper()
	results := play(t, g, calls...)
	s, n := unpackResult(uint64(results[len(results)-1]))
	b, _ := memoryOf(g.in).Read(dstAt, n)
	return s.String(), string(b)
}

func TestLimits_OperationsAtTheirEdges(t *testing.T) {
	get := hostCall{"api_get", [4]uint32{requestAt, 4, dstAt, 1000}}
	long := func(n uint32) hostCall { return hostCall{"api_get", [4]uint32{requestAt, n, dstAt, 1000}} }
	event := hostCall{"event_record", [4]uint32{requestAt, 4, dstAt, 1000}}
	events := slices.Repeat([]hostCall{event}, share.Events)
	for _, tc := range []struct {
		name    abi.LimitName
		limits  share.Limits
		calls   []hostCall
		status  string
		message string
	}{
		{"", share.Limits{HostCalls: 3}, []hostCall{get, get, get}, "OK", ""},
		{abi.LimitHostCalls, share.Limits{HostCalls: 2}, []hostCall{get, get, get}, "BUDGET", "(host_calls 2)"},
		{"", share.Limits{}, []hostCall{long(share.RequestBytes)}, "OK", ""},
		{abi.LimitRequestBytes, share.Limits{}, []hostCall{long(share.RequestBytes + 1)}, "TOO_LARGE", "(request_bytes 4Mi)"},
		{"", share.Limits{EventRate: 1000}, events, "OK", ""},
		{abi.LimitEvents, share.Limits{EventRate: 1000}, append(events, event), "BUDGET", "(events 100)"},
		{abi.LimitEventRate, share.Limits{EventRate: 2}, []hostCall{event, event, event}, "BUDGET", "(event_rate 2)"},
	} {
		inBubble(t, func(t *testing.T) { // the clock stands still
			m := loaded(t, wasm.Calls, Config{API: apiOf(nil), Limits: tc.limits})
			g := acquire(t, m)
			memoryOf(g.in).Grow(share.RequestBytes / share.PageSize)
			status, body := refusedWith(t, g, tc.calls...)
			if status != tc.status || !strings.Contains(body, tc.message) {
				t.Errorf("%+v: got %s %q, want %s %q", tc.limits, status, body, tc.status, tc.message)
			}
			if hits := m.LimitStats()[tc.name]; tc.name != "" && hits != 1 {
				t.Errorf("%s: counted %v", tc.name, m.LimitStats())
			}
		})
	}
}

func TestLimits_EventsComeBackWithTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := acquire(t, loaded(t, wasm.Calls, Config{API: apiOf(nil), Limits: share.Limits{EventRate: 1}}))
		event := hostCall{"event_record", [4]uint32{requestAt, 4, dstAt, 1000}}
		for i, want := range []string{"OK", "BUDGET", "OK"} {
			if got, _ := refusedWith(t, g, event); got != want {
				t.Errorf("%d: got %s, want %s", i, got, want)
			}
			if i == 1 {
				<-time.After(time.Second)
			}
		}
	})
}

// Lines beyond the rate are dropped and counted, the log reports this once a minute, and the
// next second has room again.
func TestLimits_LogRate(t *testing.T) {
	for _, tc := range []struct {
		name   abi.LimitName
		limits share.Limits
		line   string
		room   int // lines in a second
	}{
		{abi.LimitLogLines, share.Limits{LogLines: 3}, "hello", 3},
		{abi.LimitLogBytes, share.Limits{}, strings.Repeat("h", operation.MaxLine), share.LogBytes / operation.MaxLine},
	} {
		inBubble(t, func(t *testing.T) {
			var log bytes.Buffer
			m := loaded(t, wasm.Calls, Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Limits: tc.limits})
			g := acquire(t, m)
			poke(t, g, lineAt, []byte(tc.line))
			write := func(lines int) {
				for range lines { // each in a call of its own, which has a limit too
					play(t, g, hostCall{"log", [4]uint32{0, lineAt, uint32(len(tc.line))}})
				}
			}
			write(tc.room + 3)
			if lines, said := strings.Count(log.String(), tc.line), strings.Count(log.String(), "limit="+string(tc.name)); lines != tc.room || said != 1 {
				t.Errorf("%s: %d lines, reported %d times", tc.name, lines, said)
			}
			if got := m.LimitStats()[tc.name]; got != 3 {
				t.Errorf("%s: counted %d dropped lines, want 3", tc.name, got)
			}
			<-time.After(time.Second)
			write(1)
			if lines := strings.Count(log.String(), tc.line); lines != tc.room+1 {
				t.Errorf("%s: %d lines after a second, want %d", tc.name, lines, tc.room+1)
			}
			<-time.After(time.Minute)
			write(tc.room + 1)
			if !strings.Contains(log.String(), "dropped_lines=3") {
				t.Errorf("%s: the number of dropped lines is not in the log", tc.name)
			}
		})
	}
}

func TestLimits_MetricSeries(t *testing.T) {
	var got []string
	cfg := Config{Limits: share.Limits{MetricSeries: 2}, Observer: operation.Observer{Metric: func(kind int32, name string, value float64) abi.Status {
		got = append(got, fmt.Sprint(kind, name, value))
		return abi.StatusOK
	}}}
	m := loaded(t, wasm.Calls, cfg)
	g := acquire(t, m)
	poke(t, g, requestAt, []byte("abcd"))
	metric := func(kind, at, n uint32) hostCall { return hostCall{"metric", [4]uint32{kind, requestAt + at, n}} }
	results := play(t, g, metric(0, 0, 1), metric(0, 1, 1), metric(0, 2, 1), metric(0, 0, 1), metric(1, 0, 1), metric(0, 0, operation.MaxMetricName+1))
	want := []int64{0, 0, int64(abi.StatusBudget), 0, int64(abi.StatusBudget), int64(abi.StatusTooLarge)}
	if diff := cmp.Diff(want, results); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"0a1", "0b1", "0a1"}, got); diff != "" {
		t.Error(diff)
	}
	if hits := m.LimitStats()[abi.LimitMetricSeries]; hits != 2 {
		t.Errorf("counted %d", hits)
	}
}
