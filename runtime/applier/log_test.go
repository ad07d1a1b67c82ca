// SPDX-License-Identifier: Apache-2.0

package applier

import (
	"context"
	"fmt"
	"log/slog"
)

// logged is a log in memory: one line per record, without the parts that differ between two runs of a test.
type logged struct{ lines []string }

func (l *logged) logger() *slog.Logger { return slog.New(logHandler{l}) }

type logHandler struct{ l *logged }

func (logHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h logHandler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h logHandler) WithGroup(string) slog.Handler          { return h }

func (h logHandler) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "reconcile_id" {
			line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		}
		return true
	})
	h.l.lines = append(h.l.lines, line)
	return nil
}
