// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/internal/humanize"
)

// consoleLine returns the output of a console for one call, without the time.
func consoleLine(t *testing.T, write func(*slog.Logger)) string {
	t.Helper()
	var b bytes.Buffer
	write(slog.New(NewConsole(&b, slog.LevelInfo)))
	if b.Len() == 0 {
		return ""
	}
	clock, line, _ := strings.Cut(b.String(), " ")
	if _, err := time.Parse("15:04:05.000", clock); err != nil {
		t.Errorf("the line begins with %q, not with a time: %v", clock, err)
	}
	return line
}

func TestConsole_MessageIsBareAndAttributesFollow(t *testing.T) {
	for _, c := range []struct {
		write func(*slog.Logger)
		want  string
	}{
		{func(l *slog.Logger) { l.Info("stopped") }, "INFO  stopped\n"},
		{func(l *slog.Logger) { l.Debug("not at this level") }, ""},
		{func(l *slog.Logger) { l.Warn("watch failing", "watch", "a b", "n", 2) }, "WARN  watch failing watch=\"a b\" n=2\n"},
		{func(l *slog.Logger) { l.Info("d", "took", 1234567*time.Nanosecond) }, "INFO  d took=1.23ms\n"},
		{func(l *slog.Logger) { l.Info("m", "memory", humanize.Bytes(256<<20)) }, "INFO  m memory=256Mi\n"},
		{func(l *slog.Logger) { l.Error("e", "error", errors.New("two\nlines")) }, "ERROR e error=\"two\\nlines\"\n"},
		{func(l *slog.Logger) { l.With("controller", "c").WithGroup("g").Info("m", "k", 1) }, "INFO  m controller=c g.k=1\n"},
		{func(l *slog.Logger) { l.Info("m", "level", "high", "msg", "x", "time", "noon") }, "INFO  m level=high msg=x time=noon\n"},
	} {
		if diff := cmp.Diff(c.want, consoleLine(t, c.write)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestConsole_MessagesForgeNothing: a guest's message cannot look like lines, attributes or terminal codes of the host.
func TestConsole_MessagesForgeNothing(t *testing.T) {
	for _, msg := range []string{
		"a\n10:00:00.000 INFO  stopped", "reconciled object=default/x", "\x1b[2J", `"quoted" and more`, "", "\u202egnp", "bad \xff utf8",
	} {
		got := consoleLine(t, func(l *slog.Logger) { l.Info(msg) })
		if want := fmt.Sprintf("INFO  %q\n", msg); got != want {
			t.Errorf("%q is written as %q, want %q", msg, got, want)
		}
	}
}

// TestConsole_LinesStayWhole: loggers derived from one share its lock.
func TestConsole_LinesStayWhole(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(NewConsole(&b, slog.LevelInfo))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			l := log.With("worker", i)
			for range 200 {
				l.Info("tick", "pad", strings.Repeat("x", 50))
			}
		})
	}
	wg.Wait()
	n := 0
	for line := range strings.Lines(b.String()) {
		if n++; !strings.HasSuffix(line, "pad="+strings.Repeat("x", 50)+"\n") || strings.Count(line, "tick") != 1 {
			t.Fatalf("broken line %q", line)
		}
	}
	if n != 8*200 {
		t.Errorf("%d lines, want %d", n, 8*200)
	}
}
