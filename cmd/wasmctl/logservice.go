package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/runtime/admin"
)

// logLevels are the names of levels, the one that says most first.
var logLevels = []string{"debug", "info", "warn", "error"}

// Logs implements admin.Logger.
func (p *process) Logs(ctx context.Context, controller string, q admin.LogQuery, emit func([]byte) error) error {
	m, err := p.member(controller)
	if err != nil {
		return err
	}
	f := feedOf(m.log)
	lines, next, more := f.from(0)
	lines = slices.DeleteFunc(lines, func(l feedLine) bool {
		return q.Object != "" && l.object != q.Object || l.time.Before(q.Since)
	})
	if q.Tail >= 0 {
		lines = lines[max(0, len(lines)-q.Tail):]
	}
	for {
		for _, l := range lines {
			if q.Object != "" && l.object != q.Object {
				continue
			}
			if err := emit(l.json); err != nil {
				return err
			}
		}
		if !q.Follow {
			return nil
		}
		select {
		case <-more:
			lines, next, more = f.from(next)
		case <-m.ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// LogLevel implements admin.Logger.
func (p *process) LogLevel(controller, level string) (string, error) {
	m, err := p.member(controller)
	if err != nil {
		return "", err
	}
	f := feedOf(m.log)
	if level != "" {
		var l slog.Level
		if !slices.Contains(logLevels, strings.ToLower(level)) || l.UnmarshalText([]byte(level)) != nil {
			return "", fmt.Errorf("level %q: want one of %s", level, strings.Join(logLevels, ", "))
		}
		f.level.Set(l)
		m.log.Warn("log level changed", "controller", controller, "level_now", strings.ToLower(level))
	}
	return strings.ToLower(f.level.Level().String()), nil
}
