// SPDX-License-Identifier: Apache-2.0

package zap

import (
	"slices"

	"go.uber.org/zap/zapcore"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
)

// core writes to the host's log.
type core struct {
	zapcore.LevelEnabler
	attrs []any // pairs of a name and a value
}

// With implements zapcore.Core.
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.LevelEnabler, c.with(fields)}
}

func (c *core) with(fields []zapcore.Field) []any {
	attrs := slices.Clip(c.attrs)
	for _, f := range fields {
		values := zapcore.NewMapObjectEncoder()
		f.AddTo(values)
		for name, value := range values.Fields {
			attrs = append(attrs, name, value)
		}
	}
	return attrs
}

// Check implements zapcore.Core.
func (c *core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) && hostlog.Enabled(levelOf(e.Level)) {
		return to.AddCore(e, c)
	}
	return to
}

// Write implements zapcore.Core.
func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	attrs := c.with(fields)
	if e.LoggerName != "" {
		attrs = append([]any{"logger", e.LoggerName}, attrs...)
	}
	hostlog.Write(levelOf(e.Level), e.Message, attrs)
	return nil
}

// Sync implements zapcore.Core.
func (*core) Sync() error { return nil }

func levelOf(level zapcore.Level) hostlog.Level {
	switch {
	case level < zapcore.InfoLevel:
		return hostlog.Debug
	case level == zapcore.InfoLevel:
		return hostlog.Info
	case level == zapcore.WarnLevel:
		return hostlog.Warn
	}
	return hostlog.Error
}
