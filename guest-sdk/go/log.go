// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/wasmctl/wasmctl/guest-sdk/go/internal/wire"
)

// Level is the level of a log line, with the numbers of log/slog.
type Level int32

// The levels.
const (
	LevelDebug Level = -4
	LevelInfo  Level = 0
	LevelWarn  Level = 4
	LevelError Level = 8
)

// Logger writes to the host's log. Attributes are pairs of a string and any
// value, as in log/slog: log.Info("applied", "configmap", name). If the host
// discards a level, the Logger does not encode its lines. The host also logs
// the output of a module to stdout and stderr, but without a level and
// attributes.
type Logger struct {
	g *guest
}

// Enabled reports whether the host records lines of this level.
func (l *Logger) Enabled(level Level) bool { return int32(level) >= l.g.host.LogLevel() }

// Debug logs details for debugging.
func (l *Logger) Debug(msg string, attrs ...any) { l.write(LevelDebug, msg, attrs) }

// Info logs an ordinary event.
func (l *Logger) Info(msg string, attrs ...any) { l.write(LevelInfo, msg, attrs) }

// Warn logs a problem that deserves attention but needs no immediate action.
func (l *Logger) Warn(msg string, attrs ...any) { l.write(LevelWarn, msg, attrs) }

// Error logs a failure. Do not log errors that Reconcile returns: the host logs
// them.
func (l *Logger) Error(msg string, attrs ...any) { l.write(LevelError, msg, attrs) }

func (l *Logger) write(level Level, msg string, attrs []any) {
	if !l.Enabled(level) {
		return
	}
	b := wire.NewBuilder(l.g.request[:0])
	b.Text("msg", clip(msg))
	used := append(make([]string, 0, 8), "msg")
	for i := 0; i < len(attrs); i += 2 {
		key, val := attr(attrs[i:])
		for slices.Contains(used, key) {
			key += "_" // keys of a map must be unique
		}
		used = append(used, key)
		if err := b.Value(key, printable(val)); err != nil {
			b.Text(key, clip("!ERROR: "+err.Error()))
		}
	}
	l.g.request = b.End()
	l.g.host.Log(int32(level), l.g.request)
}

// attr reads the next pair. As in log/slog, a key without a value, or a key
// that is not a string, gets the name !BADKEY.
func attr(attrs []any) (string, any) {
	key, ok := attrs[0].(string)
	switch {
	case !ok && len(attrs) > 1:
		return "!BADKEY", attrs[1]
	case !ok || len(attrs) == 1:
		return "!BADKEY", attrs[0]
	}
	return clip(key), attrs[1]
}

// printable converts errors, stringers and similar values to text.
func printable(v any) any {
	switch v := v.(type) {
	case string:
		return clip(v)
	case error:
		return clip(v.Error())
	case Value, Object:
		return v
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case time.Duration:
		return v.String()
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case interface{ String() string }:
		return clip(v.String())
	}
	return v
}
