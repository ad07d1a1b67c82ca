// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Bounds of the lines that a guest can write to the host's log.
const (
	MaxLine   = 8 << 10  // bytes of one line; a longer one is split
	maxHead   = 1 << 10  // bytes of the start of the output, for the error of a trap
	maxTail   = 3 << 10  // bytes of its end
	MaxOutput = 64 << 10 // bytes of one entry call; the rest is counted
	maxFields = 64 << 10 // bytes of a log message with attributes
	// LineOverhead is the cost of a line in addition to its text, so that empty lines are
	// bounded too.
	LineOverhead = 64
)

// ownKeys are the attributes with which the host describes the origin of a line. Attributes
// of a guest with these names are renamed.
var ownKeys = []string{
	"controller", "module", "revision", "object", "reason", "reconcile_id", "trace_id", "time", "level", "msg", "source", fromKey,
}

// fromKey is the attribute of each line of a guest, and of no line of the host.
const fromKey = "from"

// Stream is one of the streams to which a guest prints.
type Stream int

// The streams.
const (
	Stdout = Stream(iota)
	Stderr
)

func (s Stream) level() slog.Level {
	if s == Stdout {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// Output takes what one instance prints and logs. It belongs to the goroutine that runs the
// guest.
type Output struct {
	Excerpt

	desk *Desk
	// lines are the last, unfinished lines of each stream.
	lines [2][]byte
	// logged counts the bytes of this call, and dropped those of them that did not reach
	// the log.
	logged, dropped int
	// pending are the lines since a panic began. told reports that the error of the call
	// contains them.
	pending      []pendingLine
	pendingBytes int
	told         bool
}

// Print implements Host: it makes a log line of each full line.
func (d *Desk) Print(stream Stream, p []byte) {
	o := &d.Output
	o.Add(p)
	line := &o.lines[stream]
	for rest := p; len(rest) > 0; {
		n := bytes.IndexByte(rest, '\n')
		end := n >= 0
		if !end {
			n = len(rest)
		}
		n = min(n, MaxLine-len(*line))
		*line = append(*line, rest[:n]...)
		rest = rest[n:]
		switch {
		case len(rest) > 0 && rest[0] == '\n':
			rest = rest[1:]
			o.endLine(stream)
		case len(*line) >= MaxLine:
			o.endLine(stream)
		}
	}
}

// endLine logs the line of a stream.
func (o *Output) endLine(stream Stream) {
	if line := bytes.TrimRight(o.lines[stream], "\r"); len(line) > 0 && !o.postpone(stream.level(), line) {
		o.print(stream.level(), line)
	}
	o.lines[stream] = o.lines[stream][:0]
}

// Begin starts a call.
func (o *Output) Begin() {
	o.Reset()
	o.logged, o.dropped, o.told = 0, 0, false
}

// End ends a call: unfinished lines are logged, and the number of dropped bytes is reported.
func (o *Output) End() {
	o.endLine(Stdout)
	o.endLine(Stderr)
	o.logPending()
	if o.dropped > 0 && o.admit(0) {
		o.write(slog.LevelWarn, "truncated the output of a call", []slog.Attr{slog.Int("dropped_bytes", o.dropped)})
	}
}

// Drop counts bytes that a guest process did not pass on.
func (o *Output) Drop(n int) { o.dropped += n }

// Log implements Host: the message is text, or a map of msg and attributes. A message that
// is dropped is not decoded.
func (d *Desk) Log(level slog.Level, b []byte) {
	o := &d.Output
	if len(b) == 0 || len(b) > maxFields || !isMap(b[0]) {
		o.text(level, b[:min(len(b), MaxLine)])
		return
	}
	if !o.allow(len(b)) {
		return
	}
	d.Worker.Charge(len(b))
	if m, err := abi.DecodeObject(b); err == nil {
		msg, attrs := attributes(m)
		o.guest(level, msg, attrs)
	} else {
		o.guest(level, validText(b[:min(len(b), MaxLine)]), nil)
	}
}

// Warn implements Host.
func (d *Desk) Warn(msg string) {
	if d.Output.allow(len(msg)) {
		d.Output.write(slog.LevelWarn, msg, nil)
	}
}

func validText(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// isMap reports whether a msgpack value that starts with c is a map; no text in UTF-8
// starts so.
func isMap(c byte) bool { return c&0xf0 == 0x80 || c == 0xde || c == 0xdf }

func attributes(m map[string]any) (msg string, attrs []slog.Attr) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if text, ok := m[k].(string); ok && k == "msg" {
			msg = text
			continue
		}
		name := k
		if slices.Contains(ownKeys, k) {
			name = "guest_" + k
		}
		attrs = append(attrs, slog.Any(name, m[k]))
	}
	return msg, attrs
}

// text logs a line of the guest. Dropped text is not copied, because it may have gigabytes.
func (o *Output) text(level slog.Level, b []byte) {
	if o.allow(len(b)) {
		o.guest(level, validText(b), nil)
	}
}

// allow reports whether this call and the module may log n bytes more.
func (o *Output) allow(n int) bool {
	if o.logged+n > MaxOutput {
		o.dropped += n
		return false
	}
	o.logged += n + LineOverhead
	return o.admit(n)
}

// admit reports whether the module may log a line of n bytes now. The first dropped line is
// reported, and then periodically the number of dropped lines.
func (o *Output) admit(n int) bool {
	env := o.desk.Env
	over, dropped := env.Module.logs.admit(time.Now(), &env.Limits, n)
	if over == "" {
		return true
	}
	env.Share.Hits.Add(over)
	if dropped > 0 {
		o.write(slog.LevelWarn, "dropping log lines of the module: it exceeds its rate limit", []slog.Attr{
			slog.String("limit", string(over)), slog.Int64("value", env.Limits.Get(over)), slog.Uint64("dropped_lines", dropped),
		})
	}
	return false
}

// guest writes a line of the guest.
func (o *Output) guest(level slog.Level, msg string, attrs []slog.Attr) {
	secrets := o.desk.Env.Secrets
	for i := range attrs {
		attrs[i].Value = slog.AnyValue(secrets.Any(attrs[i].Value.Any()))
	}
	o.write(level, secrets.Text(msg), append(attrs, slog.String(fromKey, "guest")))
}

func (o *Output) write(level slog.Level, msg string, attrs []slog.Attr) {
	run := o.desk.Run
	ctx := run.Parent
	if ctx == nil {
		ctx = context.Background()
	}
	if run.Key.Name != "" {
		attrs = append(attrs, slog.String("object", run.Key.String()))
	}
	if run.ID != "" {
		attrs = append(attrs, slog.String("reconcile_id", run.ID))
	}
	o.desk.Env.Log.LogAttrs(ctx, level, msg, attrs...)
}
