// SPDX-License-Identifier: Apache-2.0

package zap_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	uzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// kept returns the levels of logr, up to 4, that a logger enables.
func kept(opts ...zap.Opts) string {
	var out bytes.Buffer
	l := zap.New(append(opts, zap.WriteTo(&out))...)
	for level := range 5 {
		l.V(level).Info(string(rune('0' + level)))
	}
	return strings.NewReplacer("DEBUG ", "", "\n", "").Replace(out.String())
}

// Development enables the debug level, an explicit level overrides it, and a
// level of zap is the negative level of logr.
func TestNew_KeepsWhatTheOptionsSay(t *testing.T) {
	for _, test := range []struct {
		want string
		opts []zap.Opts
	}{
		{"0", nil},
		{"01", []zap.Opts{zap.UseDevMode(true)}},
		{"", []zap.Opts{zap.Level(zapcore.ErrorLevel)}},
		{"0123", []zap.Opts{zap.Level(zapcore.Level(-3)), zap.UseDevMode(true)}},
		{"01", []zap.Opts{zap.UseFlagOptions(&zap.Options{Development: true})}},
	} {
		if got := kept(test.opts...); got != test.want {
			t.Errorf("kept %q, want %q", got, test.want)
		}
	}
}

// host is a host that records lines.
type host []string

func (*host) Enabled(level hostlog.Level) bool { return level >= hostlog.Info }
func (h *host) Log(level hostlog.Level, msg string, attrs []any) {
	*h = append(*h, fmt.Sprint(level, " ", msg, " ", attrs))
}

// Output of a program to its own standard output is its log, and has the right
// levels.
func TestNew_TheProgramsOutputIsTheHostsLog(t *testing.T) {
	for _, out := range []io.Writer{nil, os.Stderr, os.Stdout} {
		var got host
		hostlog.Current = &got
		zap.New(zap.WriteTo(out)).Info("one", "k", 1)
		zap.NewRaw(zap.WriteTo(out)).Warn("two")
		hostlog.Current = nil
		if want := []string{"0 one [k 1]", "4 two []"}; !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", out, got, want)
		}
	}
}

// A raw logger has levels, names and fields in the host's log, and sends only
// lines that the host records.
func TestNewRaw_WritesToTheHost(t *testing.T) {
	var got host
	hostlog.Current = &got
	t.Cleanup(func() { hostlog.Current = nil })
	l := zap.NewRaw(zap.UseDevMode(true)).Named("a").With(uzap.String("k", "v"))
	l.Debug("debug")
	l.Info("info", uzap.Int("n", 1))
	l.Warn("warn")
	l.Error("error", uzap.Error(io.EOF))
	want := host{"0 info [logger a k v n 1]", "4 warn [logger a k v]", "8 error [logger a k v error EOF]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// All flags of kubebuilder's projects exist, and invalid levels are refused.
func TestFlags_SetTheLevel(t *testing.T) {
	for args, want := range map[string]string{
		"": "0", "-zap-devel": "01", "-zap-log-level=debug": "01", "-zap-log-level=3": "0123", "-zap-log-level=error": "",
		"-zap-encoder=json -zap-stacktrace-level=error -zap-time-encoding=epoch": "0",
		"-zap-log-level=much": "error", "-zap-log-level=-1": "error", "-zap-log-level=0": "error",
	} {
		var o zap.Options
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		o.BindFlags(fs)
		got := "error"
		if fs.Parse(strings.Fields(args)) == nil {
			got = kept(zap.UseFlagOptions(&o))
		}
		if got != want {
			t.Errorf("%s: kept %q, want %q", args, got, want)
		}
	}
}
