// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
)

// levels are the names of levels in common logging libraries, in lower case.
var levels = map[string]slog.Level{
	"trace": slog.LevelDebug, "trac": slog.LevelDebug, "trc": slog.LevelDebug,
	"debug": slog.LevelDebug, "debu": slog.LevelDebug, "dbg": slog.LevelDebug,
	"info": slog.LevelInfo, "inf": slog.LevelInfo, "i": slog.LevelInfo, "notice": slog.LevelInfo,
	"warn": slog.LevelWarn, "warning": slog.LevelWarn, "wrn": slog.LevelWarn, "w": slog.LevelWarn,
	"error": slog.LevelError, "erro": slog.LevelError, "err": slog.LevelError, "e": slog.LevelError, "critical": slog.LevelError,
	"dpanic": slog.LevelError, "panic": slog.LevelError, "pani": slog.LevelError, "pnc": slog.LevelError,
	"fatal": slog.LevelError, "fata": slog.LevelError, "ftl": slog.LevelError, "f": slog.LevelError,
}

// parseLevel returns the level of a name, such as INFO+2 of slog and Level(-3) of zap, or of a verbosity of logr.
func parseLevel(name string) (slog.Level, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	if n, err := strconv.Atoi(name); err == nil {
		return verbosity(n), n >= 0
	}
	if strings.HasPrefix(name, "level(-") {
		return slog.LevelDebug, true
	}
	if at := strings.IndexAny(name, "+-"); at > 0 {
		name = name[:at]
	}
	level, ok := levels[name]
	return level, ok
}

func verbosity(n int) slog.Level {
	if n > 0 {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// isLevel reports whether a column is a level.
func isLevel(column string) bool {
	_, err := strconv.Atoi(column)
	_, ok := parseLevel(column)
	return ok && err != nil && len(column) > 2
}

// takeLevel removes the level and the time from the parts of a line. The host's record has its own time. Without a
// level, an error has the level of errors, a verbosity that of logr, and other lines that of their stream.
func takeLevel(m map[string]any, stream slog.Level) slog.Level {
	level, known := stream, false
	for _, name := range []string{"level", "lvl", "severity"} {
		if value, ok := m[name]; ok && !known {
			if level, known = parseLevel(fmt.Sprint(value)); known {
				delete(m, name)
			}
		}
	}
	for _, name := range []string{"ts", "time", "timestamp"} {
		delete(m, name)
	}
	if known {
		return level
	}
	if v, err := strconv.Atoi(fmt.Sprint(m["v"])); err == nil {
		return verbosity(v)
	}
	if m["error"] != nil || m["err"] != nil {
		return slog.LevelError
	}
	return stream
}
