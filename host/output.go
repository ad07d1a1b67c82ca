package host

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wasmctl/wasmctl/abi"
)

// Bounds of what a guest can write to the host's log.
const (
	maxLine   = 8 << 10  // bytes of one line; a longer one is split
	maxHead   = 1 << 10  // bytes kept of the start of the output, for the error of a trap
	maxTail   = 3 << 10  // and of its end
	maxOutput = 64 << 10 // bytes of one entry call; the rest is counted
	maxFields = 64 << 10 // bytes of a log message with attributes
	// lineOverhead is the cost of a line in addition to its text, so that empty
	// lines are bounded too.
	lineOverhead = 64
)

// ownKeys are the attributes by which the host says where a line comes from. A
// guest's attributes of these names are renamed.
var ownKeys = []string{
	"controller", "module", "revision", "object", "reason", "reconcile_id", "trace_id", "time", "level", "msg", "source", fromKey,
}

// fromKey is the attribute of each line of a guest, and of no line of the host.
const fromKey = "from"

// output takes what one instance prints and logs. It is used by the goroutine
// that runs the guest.
type output struct {
	in *instance
	// out and err hold the last, unfinished line of each stream.
	out, err []byte
	// head and tail hold the start and the end of both streams, cut the bytes
	// between. A panic names its reason first, and then each goroutine.
	head, tail []byte
	cut        int
	// logged counts the bytes of this call, dropped those of them that did not
	// reach the log.
	logged, dropped int
	// held are the lines since a panic began, told says that the error of the call
	// has them.
	held      []heldLine
	heldBytes int
	told      bool
}

// stream is stdout or stderr of an instance.
type stream struct {
	o     *output
	line  *[]byte
	level slog.Level
}

func (o *output) stdout() *stream { return &stream{o, &o.out, slog.LevelInfo} }
func (o *output) stderr() *stream { return &stream{o, &o.err, slog.LevelWarn} }

// write makes a log line of each full line.
func (s *stream) write(p []byte) {
	s.o.keep(p)
	if up := s.o.in.upstream; up != nil {
		up.print(s.level, p)
		return
	}
	for rest := p; len(rest) > 0; {
		n := bytes.IndexByte(rest, '\n')
		end := n >= 0
		if !end {
			n = len(rest)
		}
		n = min(n, maxLine-len(*s.line))
		*s.line = append(*s.line, rest[:n]...)
		rest = rest[n:]
		switch {
		case len(rest) > 0 && rest[0] == '\n':
			rest = rest[1:]
			s.flush()
		case len(*s.line) >= maxLine:
			s.flush()
		}
	}
}

func (s *stream) flush() {
	if line := bytes.TrimRight(*s.line, "\r"); len(line) > 0 && !s.o.hold(s.level, line) {
		s.o.text(s.level, line)
	}
	*s.line = (*s.line)[:0]
}

// keep keeps output for the error of a trap.
func (o *output) keep(p []byte) {
	n := min(len(p), maxHead-len(o.head))
	o.head = append(o.head, p[:n]...)
	p = p[n:]
	if len(p) > maxTail {
		o.cut += len(p) - maxTail
		p = p[len(p)-maxTail:]
	}
	if over := len(o.tail) + len(p) - maxTail; over > 0 {
		o.cut += over
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
	o.tail = append(o.tail, p...)
}

// excerpt is what was kept, for an error message.
func (o *output) excerpt() string {
	text := string(o.head)
	if o.cut > 0 {
		text += fmt.Sprintf("\n[%d bytes left out]\n", o.cut)
	}
	return strings.TrimSpace(strings.ToValidUTF8(text+string(o.tail), "\uFFFD"))
}

// reset starts a call.
func (o *output) reset() {
	o.head, o.tail, o.cut, o.logged, o.dropped, o.told = o.head[:0], o.tail[:0], 0, 0, 0, false
}

// flush ends a call: unfinished lines are logged, and what was dropped is told.
func (o *output) flush() {
	o.stdout().flush()
	o.stderr().flush()
	o.release()
	if o.dropped > 0 && o.admit(0) {
		o.write(slog.LevelWarn, "truncated the output of a call", []slog.Attr{slog.Int("dropped_bytes", o.dropped)})
	}
}

// message logs what a guest passed to log: text, or a map of msg and
// attributes. What is dropped is not decoded.
func (o *output) message(level slog.Level, b []byte) {
	if up := o.in.upstream; up != nil {
		up.log(level, b)
		return
	}
	if len(b) == 0 || len(b) > maxFields || !isMap(b[0]) {
		o.text(level, b[:min(len(b), maxLine)])
		return
	}
	if !o.allow(len(b)) {
		return
	}
	o.in.charge(len(b))
	if m, err := abi.DecodeObject(b); err == nil {
		msg, attrs := attributes(m)
		o.guest(level, msg, attrs)
	} else {
		o.guest(level, validText(b[:min(len(b), maxLine)]), nil)
	}
}

func validText(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// isMap reports whether a msgpack value that starts with c is a map; no text
// in UTF-8 starts so.
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

// text logs what a guest wrote. Dropped text is not copied either: it can have
// gigabytes.
func (o *output) text(level slog.Level, b []byte) {
	if up := o.in.upstream; up != nil {
		up.log(level, b)
		return
	}
	if o.allow(len(b)) {
		o.guest(level, validText(b), nil)
	}
}

// log writes one line of the host's, unless this call has written too much.
func (o *output) log(level slog.Level, msg string, attrs []slog.Attr) {
	if up := o.in.upstream; up != nil {
		up.log(level, []byte(msg))
		return
	}
	if o.allow(len(msg)) {
		o.write(level, msg, attrs)
	}
}

func (o *output) allow(n int) bool {
	if o.logged+n > maxOutput {
		o.dropped += n
		return false
	}
	o.logged += n + lineOverhead
	return o.admit(n)
}

// admit reports whether the module may log a line of so many bytes now. Dropped
// lines are reported once, and then periodically with their number.
func (o *output) admit(n int) bool {
	g := o.in.gen
	over, dropped := g.shared.logs.admit(time.Now(), &g.limits, n)
	if over == "" {
		return true
	}
	g.shared.hits.add(over)
	if dropped > 0 {
		o.write(slog.LevelWarn, "dropping log lines of the module: it exceeds its rate limit", []slog.Attr{
			slog.String("limit", string(over)), slog.Int64("value", g.limits.Get(over)), slog.Uint64("dropped_lines", dropped),
		})
	}
	return false
}

// guest writes a line of the guest's.
func (o *output) guest(level slog.Level, msg string, attrs []slog.Attr) {
	secrets := o.in.gen.cfg.Secrets
	for i := range attrs {
		attrs[i].Value = slog.AnyValue(secrets.Any(attrs[i].Value.Any()))
	}
	o.write(level, secrets.Text(msg), append(attrs, slog.String(fromKey, "guest")))
}

func (o *output) write(level slog.Level, msg string, attrs []slog.Attr) {
	run := &o.in.run
	ctx := run.parent
	if ctx == nil {
		ctx = context.Background()
	}
	if run.key.Name != "" {
		attrs = append(attrs, slog.String("object", run.key.String()))
	}
	if run.id != "" {
		attrs = append(attrs, slog.String("reconcile_id", run.id))
	}
	o.in.gen.log.LogAttrs(ctx, level, msg, attrs...)
}
