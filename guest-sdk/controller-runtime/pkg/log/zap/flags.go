// SPDX-License-Identifier: Apache-2.0

package zap

import (
	"flag"
	"fmt"
	"strconv"
	"strings"

	"go.uber.org/zap/zapcore"
)

// BindFlags registers the flags of the options.
func (o *Options) BindFlags(fs *flag.FlagSet) {
	fs.BoolVar(&o.Development, "zap-devel", o.Development, "enable the debug level")
	fs.Func("zap-log-level", "the lowest enabled level: debug, info, error, panic, or a number above 0", func(s string) error {
		level, err := parseLevel(s)
		if err == nil {
			o.Level = level
		}
		return err
	})
	for _, name := range []string{"zap-encoder", "zap-stacktrace-level", "zap-time-encoding"} {
		fs.String(name, "", "has no effect in a module: the host writes the log")
	}
}

// parseLevel parses a name or a level of logr.
func parseLevel(s string) (zapcore.Level, error) {
	switch strings.ToLower(s) {
	case "debug":
		return zapcore.DebugLevel, nil
	case "info":
		return zapcore.InfoLevel, nil
	case "error":
		return zapcore.ErrorLevel, nil
	case "panic":
		return zapcore.PanicLevel, nil
	}
	if n, err := strconv.ParseUint(s, 10, 7); err == nil && n > 0 {
		return zapcore.Level(-int8(n)), nil //nolint:gosec // 7 bits
	}
	return 0, fmt.Errorf("level[%s]: want debug, info, error, panic, or a number from 1 to 127", s)
}
