package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// consoleLine is what a console writes for one call, without the time.
func consoleLine(t *testing.T, write func(*slog.Logger)) string {
	t.Helper()
	var b bytes.Buffer
	write(slog.New(newConsole(&b, slog.LevelInfo)))
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
		{func(l *slog.Logger) { l.Info("m", "memory", byteSize(256<<20)) }, "INFO  m memory=256Mi\n"},
		{func(l *slog.Logger) { l.Error("e", "error", errors.New("two\nlines")) }, "ERROR e error=\"two\\nlines\"\n"},
		{func(l *slog.Logger) { l.With("controller", "c").WithGroup("g").Info("m", "k", 1) }, "INFO  m controller=c g.k=1\n"},
		{func(l *slog.Logger) { l.Info("m", "level", "high", "msg", "x", "time", "noon") }, "INFO  m level=high msg=x time=noon\n"},
	} {
		if diff := cmp.Diff(c.want, consoleLine(t, c.write)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestConsole_MessagesForgeNothing: a guest's message cannot look like lines,
// attributes or terminal codes of the host.
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

// TestConsole_LinesStayWhole: loggers made from one share its lock.
func TestConsole_LinesStayWhole(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(newConsole(&b, slog.LevelInfo))
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

func TestByteSize_TextForPeopleNumberForMachines(t *testing.T) {
	for n, want := range map[byteSize]string{0: "0", 143: "143", 65536: "64Ki", 2862720: "2.7Mi", 1 << 28: "256Mi", 4 << 30: "4Gi", 1000: "1000", 1536: "1.5Ki"} {
		if got := n.String(); got != want {
			t.Errorf("%d: %q, want %q", int64(n), got, want)
		}
	}
	if b, err := json.Marshal(byteSize(1 << 28)); err != nil || string(b) != "268435456" {
		t.Errorf("JSON %s, %v", b, err)
	}
}

// TestQuietLibraries_NoBodies: what client-go sends and receives holds Secrets
// and is logged at no verbosity.
func TestQuietLibraries_NoBodies(t *testing.T) {
	ctx := t.Context()
	d := &demoted{newConsole(&bytes.Buffer{}, slog.LevelDebug)}
	for v, want := range map[int]bool{0: true, 4: true, 5: false, 8: false, 10: false} {
		if got := d.Enabled(ctx, slog.Level(-v)); got != want {
			t.Errorf("V(%d) enabled: %v, want %v", v, got, want)
		}
	}
	var out bytes.Buffer
	quiet := &demoted{newConsole(&out, slog.LevelInfo)}
	if quiet.Enabled(ctx, slog.LevelError) {
		t.Error("logged without -v")
	}
	// klog hands errors over without asking.
	if err := quiet.Handle(ctx, slog.NewRecord(time.Now(), slog.LevelError, "an error", 0)); err != nil || out.Len() > 0 {
		t.Errorf("logged without -v: %s (%v)", &out, err)
	}
}
