// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/host/redact"
)

// Bounds of the stored part of a controller's log.
const (
	maxFeedLines = 2000
	maxFeedBytes = 512 << 10
)

// AllLevels is below every level: a handler with it does not filter by level.
const AllLevels = slog.Level(math.MinInt32)

// Feed is the log of one controller: its level, its rate limits, and its last lines, for clients.
type Feed struct {
	Level  slog.LevelVar
	own    limiter // lines of the host
	guests limiter // lines of modules, which can choose texts; a flood of them hides no line of the host
	// Secrets are redacted from the lines; nil until the controller is loaded.
	Secrets atomic.Pointer[redact.Values]

	accounts *accounts              // of the process; nil if it has none
	tenant   atomic.Pointer[string] // is charged; nil until the controller is loaded

	mu    sync.Mutex
	lines []Line        // guarded by mu; the oldest first
	size  int           // bytes of lines; guarded by mu
	next  uint64        // number of the next line; guarded by mu
	more  chan struct{} // closed when another line is added; guarded by mu
	line  bytes.Buffer  // guarded by mu; buffer for the current line
}

// Dropped returns the number of lines that were dropped because of the rate limits.
func (f *Feed) Dropped() uint64 { return f.own.dropped() + f.guests.dropped() }

// Charge charges the lines to a tenant. Beyond its bounds, they are in the feed only.
func (f *Feed) Charge(tenant string) { f.tenant.Store(&tenant) }

// Limited reports whether a line of the host with this message would exceed the rate limit now, and if so counts it as dropped, so that the caller need
// not format it. If it returns false, the caller must log the line.
func (f *Feed) Limited(now time.Time, level slog.Level, message string) bool {
	return f.own.limited(now, level, message)
}

// Line is one line as JSON, with the values for selecting it.
type Line struct {
	number uint64
	Time   time.Time
	Object string
	Json   []byte
}

func newFeed(level slog.Level) *Feed {
	limit := func() limiter { return limiter{burst: logBurst, rate: logRate} }
	f := &Feed{own: limit(), guests: limit(), more: make(chan struct{})}
	f.Level.Set(level)
	return f
}

// add appends a line, which write writes as JSON.
func (f *Feed) add(at time.Time, object string, write func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.line.Reset()
	if err := write(); err != nil {
		return err
	}
	f.lines = append(f.lines, Line{f.next, at, object, bytes.Clone(f.line.Bytes())})
	f.next++
	f.size += f.line.Len()
	excess := 0
	for ; f.size > maxFeedBytes || len(f.lines)-excess > maxFeedLines; excess++ {
		f.size -= len(f.lines[excess].Json)
		f.lines[excess] = Line{}
	}
	f.lines = f.lines[excess:]
	close(f.more)
	f.more = make(chan struct{})
	return nil
}

// From returns the lines starting with a number, the number of the next line, and a channel that is closed when that line is added.
func (f *Feed) From(number uint64) (lines []Line, next uint64, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, _ := slices.BinarySearchFunc(f.lines, number, func(l Line, n uint64) int { return cmp.Compare(l.number, n) })
	return slices.Clone(f.lines[at:]), f.next, f.more
}

// feedHandler writes the log of one controller to the log of the process and to a feed.
type feedHandler struct {
	out     slog.Handler // of the process, for all levels
	json    slog.Handler // writes to feed.line
	feed    *Feed
	object  string                          // from attributes that were added earlier
	traceID func(reconcileID string) string // nil if no traces are written
}

// Enabled implements slog.Handler.
func (h *feedHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.feed.Level.Level()
}

// Handle implements slog.Handler.
func (h *feedHandler) Handle(ctx context.Context, r slog.Record) error {
	limit := &h.feed.own
	if fromGuest(&r) {
		limit = &h.feed.guests
	}
	pass, dropped := limit.allow(r.Time, r.Level, r.Message)
	if !pass {
		return nil
	}
	r = hideIn(r, h.feed.Secrets.Load())
	object, run := h.object, ""
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "object":
			object = a.Value.String()
		case "reconcile_id":
			run = a.Value.String()
		}
		return true
	})
	if run != "" && h.traceID != nil {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", h.traceID(run)))
	}
	if dropped > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Uint64("dropped", dropped))
	}
	tenant := ""
	if name := h.feed.tenant.Load(); name != nil {
		tenant = *name
	}
	err := h.feed.accounts.write(ctx, h.out, tenant, r)
	if feedErr := h.feed.add(r.Time, object, func() error { return h.json.Handle(ctx, r) }); err == nil {
		err = feedErr
	}
	return err
}

// ownAttributes are the attributes that contain wasmctl's own words or the names of reconciled objects: in these, words that equal a value
// of a Secret are not redacted.
var ownAttributes = map[string]bool{
	"controller": true, "module": true, "revision": true, "object": true, "reason": true, "reconcile_id": true, "action": true, "kind": true, "watch": true, "op": true,
	"from": true,
}

// hideIn redacts values of Secrets in a record.
func hideIn(r slog.Record, secrets *redact.Values) slog.Record {
	if secrets == nil {
		return r
	}
	attrs, changed := make([]slog.Attr, 0, r.NumAttrs()), false
	r.Attrs(func(a slog.Attr) bool {
		if text, ok := textOf(a); ok && !ownAttributes[a.Key] {
			if hidden := secrets.Text(text); hidden != text {
				a.Value, changed = slog.StringValue(hidden), true
			}
		}
		attrs = append(attrs, a)
		return true
	})
	message := secrets.Text(r.Message)
	if !changed && message == r.Message {
		return r
	}
	out := slog.NewRecord(r.Time, r.Level, message, r.PC)
	out.AddAttrs(attrs...)
	return out
}

// textOf returns the text of an attribute that is a string or an error.
func textOf(a slog.Attr) (string, bool) {
	if a.Value.Kind() == slog.KindString {
		return a.Value.String(), true
	}
	if err, ok := a.Value.Any().(error); ok {
		return err.Error(), true
	}
	return "", false
}

// WithAttrs implements slog.Handler.
func (h *feedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.out, next.json = h.out.WithAttrs(attrs), h.json.WithAttrs(attrs)
	for _, a := range attrs {
		if a.Key == "object" {
			next.object = a.Value.String()
		}
	}
	return &next
}

// WithGroup implements slog.Handler.
func (h *feedHandler) WithGroup(name string) slog.Handler {
	next := *h
	next.out, next.json = h.out.WithGroup(name), h.json.WithGroup(name)
	return &next
}

// leveled is the handler of a process: with a minimum level, and the accounts of tenants.
type leveled struct {
	slog.Handler

	level    slog.Leveler
	accounts *accounts
}

// Enabled implements slog.Handler.
func (h leveled) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

// WithAttrs implements slog.Handler.
func (h leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h leveled) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

// FeedOf returns the feed that a controller's logger writes to, or nil for another logger.
func FeedOf(log *slog.Logger) *Feed {
	if h, ok := log.Handler().(*feedHandler); ok {
		return h.feed
	}
	return nil
}

// ForController returns the logger of a new controller: that of the process with its own level, rate limits and feed. traceID, if not nil,
// returns the trace ID of a run.
func ForController(process *slog.Logger, traceID func(reconcileID string) string) *slog.Logger {
	out, f := process.Handler(), newFeed(slog.LevelDebug)
	if h, ok := out.(leveled); ok {
		out, f.accounts = h.Handler, h.accounts
		f.Level.Set(h.level.Level())
	}
	json := slog.NewJSONHandler(&f.line, &slog.HandlerOptions{Level: AllLevels})
	return slog.New(&feedHandler{out: out, json: json, feed: f, traceID: traceID})
}
