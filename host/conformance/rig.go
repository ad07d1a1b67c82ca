// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/share"
)

// rigKind identifies a kind of host.
type rigKind string

// The kinds of hosts that cases need.
const (
	fullHost  rigKind = "full"  // has everything in this version
	oldHost   rigKind = "old"   // serves no operation except config_get
	smallHost rigKind = "small" // limits memory, operations and fuel
	shortHost rigKind = "short" // gives a run half a second
	quietHost rigKind = "quiet" // logs only warnings and errors
	stopHost  rigKind = "stop"  // is stopping
)

const (
	smallMemory = 96 << 20
	smallCalls  = 3
	smallFuel   = 1 << 40
)

// nowMS is the time of all hosts: the guests' clock does not move.
const nowMS int64 = 1767225600123

// rig is the guest in one host.
type rig struct {
	module *host.Module
	api    *script
	log    *logbook
	budget *share.Budget
}

// rig returns the guest in a host of a kind, which is created at the first request.
func (g *Guest) rig(ctx context.Context, kind rigKind) (*rig, error) {
	if r := g.rigs[kind]; r != nil {
		return r, nil
	}
	cfg := host.Config{}
	switch kind {
	case smallHost:
		cfg.Limits = share.Limits{Memory: smallMemory, HostCalls: smallCalls, Fuel: smallFuel}
	case shortHost:
		cfg.Limits.Timeout = 500 * time.Millisecond
	case quietHost:
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelWarn}))
	case fullHost, oldHost, stopHost:
	}
	r, err := g.openWith(ctx, cfg, kind != oldHost)
	if err != nil {
		return nil, err
	}
	if kind == stopHost {
		r.module.Drain()
	}
	g.rigs[kind] = r
	return r, nil
}

// reset removes the results of earlier cases.
func (r *rig) reset() {
	r.api.set()
	r.log.take()
}

// script is a cluster with prepared answers.
type script struct {
	mu      sync.Mutex
	answers []abi.Response // guarded by mu; the next one first
	asked   []asked        // guarded by mu
	metrics []metric       // guarded by mu
}

// metric is one report of a guest.
type metric struct {
	kind  int32
	name  string
	value float64
}

// asked is one operation of a guest.
type asked struct {
	op  abi.Op
	req []byte
}

// set replaces the answers and forgets earlier operations.
func (s *script) set(answers ...abi.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers, s.asked, s.metrics = answers, nil, nil
}

// requests returns the operations since set.
func (s *script) requests() []asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// reported returns the metrics since set.
func (s *script) reported() []metric {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.metrics
}

// Call implements operation.API. It returns the next answer, or {kind: Answer} if none is left.
func (s *script) Call(_ context.Context, op abi.Op, req []byte) abi.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, asked{op, req})
	if len(s.answers) == 0 {
		return abi.Response{Body: encode(object{"kind": "Answer"})}
	}
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next
}

// metric records a guest's metric.
func (s *script) metric(kind int32, name string, value float64) abi.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics = append(s.metrics, metric{kind, name, value})
	return abi.StatusOK
}

// logbook is a log handler that records all lines.
type logbook struct {
	mu    sync.Mutex
	lines []line // guarded by mu
}

type line struct {
	level slog.Level
	msg   string
	attrs map[string]any
}

// take returns the lines since the last call.
func (l *logbook) take() []line {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// Enabled implements slog.Handler.
func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	attrs := map[string]any{}
	r.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value.Any()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line{r.Level, r.Message, attrs})
	return nil
}

// WithAttrs implements slog.Handler. The host's own attributes are ignored.
func (l *logbook) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l *logbook) WithGroup(string) slog.Handler { return l }
