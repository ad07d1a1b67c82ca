package main

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wasmctl/wasmctl/host/redact"
)

// Bounds of what is kept of a controller's log.
const (
	maxFeedLines = 2000
	maxFeedBytes = 512 << 10
)

// allLevels is below every level: a handler with it leaves the choice to others.
const allLevels = slog.Level(math.MinInt32)

// feed is the log of one controller: what of it is written, how often, and the
// last lines, for whoever asks.
type feed struct {
	level   slog.LevelVar
	limiter limiter
	// secrets are hidden in what is written; nil until the controller is loaded.
	secrets atomic.Pointer[redact.Values]

	mu    sync.Mutex
	lines []feedLine    // guarded by mu; the oldest first
	size  int           // bytes of lines; guarded by mu
	next  uint64        // the number of the next line; guarded by mu
	more  chan struct{} // closed when there is a further line; guarded by mu
	line  bytes.Buffer  // guarded by mu; where a line is written
}

// feedLine is one line as JSON, with what it is chosen by.
type feedLine struct {
	number uint64
	time   time.Time
	object string
	json   []byte
}

func newFeed(level slog.Level) *feed {
	f := &feed{more: make(chan struct{})}
	f.level.Set(level)
	return f
}

// add keeps a line that write writes as JSON.
func (f *feed) add(at time.Time, object string, write func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.line.Reset()
	if err := write(); err != nil {
		return err
	}
	f.lines = append(f.lines, feedLine{f.next, at, object, bytes.Clone(f.line.Bytes())})
	f.next++
	f.size += f.line.Len()
	drop := 0
	for ; f.size > maxFeedBytes || len(f.lines)-drop > maxFeedLines; drop++ {
		f.size -= len(f.lines[drop].json)
		f.lines[drop] = feedLine{}
	}
	f.lines = f.lines[drop:]
	close(f.more)
	f.more = make(chan struct{})
	return nil
}

// from returns the lines from a number on, the number of the next one, and what
// is closed when that is there.
func (f *feed) from(number uint64) (lines []feedLine, next uint64, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, _ := slices.BinarySearchFunc(f.lines, number, func(l feedLine, n uint64) int {
		switch {
		case l.number < n:
			return -1
		case l.number > n:
			return 1
		}
		return 0
	})
	return slices.Clone(f.lines[at:]), f.next, f.more
}

// feedHandler writes the log of one controller to the process's log and to a
// feed.
type feedHandler struct {
	out     slog.Handler // the process's, of all levels
	json    slog.Handler // writes to feed.line
	feed    *feed
	object  string                          // of the attributes that were given before
	traceID func(reconcileID string) string // nil where no traces are written
}

// newFeedHandler returns a handler that writes to out what the feed lets pass.
func newFeedHandler(out slog.Handler, f *feed) *feedHandler {
	return &feedHandler{out: out, json: slog.NewJSONHandler(&f.line, &slog.HandlerOptions{Level: allLevels}), feed: f}
}

// Enabled implements slog.Handler.
func (h *feedHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.feed.level.Level()
}

// Handle implements slog.Handler.
func (h *feedHandler) Handle(ctx context.Context, r slog.Record) error {
	pass, dropped := h.feed.limiter.allow(r.Time, r.Level, r.Message)
	if !pass {
		return nil
	}
	r = hideIn(r, h.feed.secrets.Load())
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
	err := h.out.Handle(ctx, r)
	if feedErr := h.feed.add(r.Time, object, func() error { return h.json.Handle(ctx, r) }); err == nil {
		err = feedErr
	}
	return err
}

// said are the attributes that are wasmctl's own words and the names of what is
// reconciled: a value of a Secret that is the same word is not hidden in them.
var said = map[string]bool{
	"controller": true, "module": true, "generation": true, "object": true, "reason": true, "reconcile_id": true, "action": true, "kind": true, "watch": true,
}

// hideIn takes the values of Secrets out of a record.
func hideIn(r slog.Record, secrets *redact.Values) slog.Record {
	if secrets == nil {
		return r
	}
	attrs, changed := make([]slog.Attr, 0, r.NumAttrs()), false
	r.Attrs(func(a slog.Attr) bool {
		if text, ok := textOf(a); ok && !said[a.Key] {
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

// textOf returns the text of an attribute that is one.
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

// leveled lets through what has a level.
type leveled struct {
	slog.Handler

	level slog.Leveler
}

// Enabled implements slog.Handler.
func (h leveled) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

// WithAttrs implements slog.Handler.
func (h leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leveled{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup implements slog.Handler.
func (h leveled) WithGroup(name string) slog.Handler {
	return leveled{h.Handler.WithGroup(name), h.level}
}

// feedOf returns the feed that a controller's logger writes to, nil for another
// logger.
func feedOf(log *slog.Logger) *feed {
	if h, ok := log.Handler().(*feedHandler); ok {
		return h.feed
	}
	return nil
}

// controllerLog returns the logger of a new controller: that of the process
// with a level, a rate and a memory of its own.
func (p *process) controllerLog() *slog.Logger {
	out, level := p.log.Handler(), slog.LevelDebug
	if h, ok := out.(leveled); ok {
		out, level = h.Handler, h.level.Level()
	}
	h := newFeedHandler(out, newFeed(level))
	if p.tracing != nil {
		h.traceID = p.tracing.traceID
	}
	return slog.New(h)
}
