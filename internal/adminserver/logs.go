// SPDX-License-Identifier: Apache-2.0

package adminserver

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/internal/logging"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// Logs implements admin.Service.
func (s Service) Logs(ctx context.Context, controller string, q admin.LogQuery, emit func([]byte) error) error {
	c, err := s.find(controller)
	if err != nil {
		return err
	}
	f := logging.FeedOf(c.Logger)
	lines, next, more := f.From(0)
	lines = slices.DeleteFunc(lines, func(l logging.Line) bool {
		return q.Object != "" && l.Object != q.Object || l.Time.Before(q.Since)
	})
	if q.Tail >= 0 {
		lines = lines[max(0, len(lines)-q.Tail):]
	}
	for {
		for _, l := range lines {
			if q.Object != "" && l.Object != q.Object {
				continue
			}
			if err := emit(l.Json); err != nil {
				return err
			}
		}
		if !q.Follow {
			return nil
		}
		select {
		case <-more:
			lines, next, more = f.From(next)
		case <-c.Ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// LogLevel implements admin.Service.
func (s Service) LogLevel(controller, level string) (string, error) {
	c, err := s.find(controller)
	if err != nil {
		return "", err
	}
	f := logging.FeedOf(c.Logger)
	if level != "" {
		var l slog.Level
		if !slices.Contains(logging.Levels, strings.ToLower(level)) || l.UnmarshalText([]byte(level)) != nil {
			return "", fmt.Errorf("level %q: want one of %s", level, strings.Join(logging.Levels, ", "))
		}
		f.Level.Set(l)
		c.Logger.Warn("log level changed", "controller", controller, "level_now", strings.ToLower(level))
	}
	return strings.ToLower(f.Level.Level().String()), nil
}
