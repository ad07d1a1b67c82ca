// SPDX-License-Identifier: Apache-2.0

// Package zap has the options of the logger that kubebuilder's projects make.
// In a module the host writes the log: levels have an effect, encodings do not.
package zap

import (
	"io"
	"os"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
)

// EncoderConfigOption changes how lines are encoded. It has no effect.
type EncoderConfigOption func(*zapcore.EncoderConfig)

// NewEncoderFunc makes an encoder. It has no effect.
type NewEncoderFunc func(...EncoderConfigOption) zapcore.Encoder

// Opts changes the options.
type Opts func(*Options)

// Options of the logger. Only Development, Level and DestWriter have an effect.
type Options struct {
	// Development enables the debug level, too.
	Development          bool
	Encoder              zapcore.Encoder
	EncoderConfigOptions []EncoderConfigOption
	NewEncoder           NewEncoderFunc
	// DestWriter receives the lines as text, instead of the host, unless it is
	// os.Stdout or os.Stderr.
	DestWriter io.Writer
	// DestWritter is DestWriter in version 0.15.
	DestWritter io.Writer
	// Level restricts the lines that go to the host; the host has its own
	// level, too.
	Level           zapcore.LevelEnabler
	StacktraceLevel zapcore.LevelEnabler
	ZapOpts         []zap.Option
	TimeEncoder     zapcore.TimeEncoder
}

// New returns a logger that writes to the host's log.
func New(opts ...Opts) logr.Logger {
	o := options(opts)
	return hostlog.New(hostlog.Options{Dest: o.DestWriter, Enabled: o.keeps})
}

// NewRaw returns a logger of zap that writes to the host's log, or JSON to
// DestWriter.
func NewRaw(opts ...Opts) *zap.Logger {
	o := options(opts)
	if o.DestWriter == nil {
		return zap.New(&core{LevelEnabler: o.level()}, o.ZapOpts...)
	}
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(o.DestWriter), o.level()), o.ZapOpts...)
}

func options(opts []Opts) *Options {
	o := &Options{}
	for _, opt := range opts {
		opt(o)
	}
	if o.DestWriter == nil {
		o.DestWriter = o.DestWritter
	}
	if o.DestWriter == os.Stderr || o.DestWriter == os.Stdout { // the log of the program, which goes to the host
		o.DestWriter = nil
	}
	return o
}

// level returns the level that the options set.
func (o *Options) level() zapcore.LevelEnabler {
	switch {
	case o.Level != nil:
		return o.Level
	case o.Development:
		return zapcore.DebugLevel
	}
	return zapcore.InfoLevel
}

// keeps reports whether lines of a level of logr are enabled. The levels of
// logr have the opposite sign.
func (o *Options) keeps(level int) bool {
	return o.level().Enabled(zapcore.Level(-min(level, 127))) //nolint:gosec // bounded
}

// UseDevMode sets Options.Development.
func UseDevMode(enabled bool) Opts { return func(o *Options) { o.Development = enabled } }

// UseFlagOptions uses the options that BindFlags filled.
func UseFlagOptions(in *Options) Opts { return func(o *Options) { *o = *in } }

// WriteTo sets Options.DestWriter.
func WriteTo(out io.Writer) Opts { return func(o *Options) { o.DestWriter = out } }

// Level sets Options.Level.
func Level(level zapcore.LevelEnabler) func(o *Options) {
	return func(o *Options) { o.Level = level }
}

// StacktraceLevel sets Options.StacktraceLevel.
func StacktraceLevel(level zapcore.LevelEnabler) func(o *Options) {
	return func(o *Options) { o.StacktraceLevel = level }
}

// Encoder sets Options.Encoder.
func Encoder(encoder zapcore.Encoder) func(o *Options) {
	return func(o *Options) { o.Encoder = encoder }
}

// JSONEncoder has no effect.
func JSONEncoder(...EncoderConfigOption) func(o *Options) { return func(*Options) {} }

// ConsoleEncoder has no effect.
func ConsoleEncoder(...EncoderConfigOption) func(o *Options) { return func(*Options) {} }

// RawZapOpts adds to Options.ZapOpts.
func RawZapOpts(zapOpts ...zap.Option) func(o *Options) {
	return func(o *Options) { o.ZapOpts = append(o.ZapOpts, zapOpts...) }
}
