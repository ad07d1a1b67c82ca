// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newFeedLogger returns a logger of a controller, and the output of the process's log.
func newFeedLogger() (*slog.Logger, *bytes.Buffer) {
	var out bytes.Buffer
	return ForController(slog.New(leveled{slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: AllLevels}), slog.LevelInfo, nil}), nil), &out
}

func TestFeed_LevelIsTheControllersOwn(t *testing.T) {
	log, out := newFeedLogger()
	other, _ := newFeedLogger()
	log.Debug("unheard")
	FeedOf(log).Level.Set(slog.LevelDebug)
	log.With("object", "a/b").Debug("heard")
	if other.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("another controller logs at debug too")
	}
	if got := out.String(); strings.Contains(got, "unheard") || !strings.Contains(got, `"msg":"heard","object":"a/b"`) {
		t.Error(got)
	}
	lines, next, _ := FeedOf(log).From(0)
	if len(lines) != 1 || next != 1 || lines[0].Object != "a/b" || string(lines[0].Json) != out.String() {
		t.Errorf("%+v", lines)
	}
}

// If a message comes too often, further lines are dropped, and counted in the next line that passes; other messages are
// not affected.
func TestFeed_RepeatedLinesAreDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := newFeedLogger()
		for range logBurst + 50 {
			log.Info("again")
		}
		log.Info("another")
		if got := strings.Count(out.String(), "again"); got != logBurst {
			t.Errorf("%d lines, want %d", got, logBurst)
		}
		<-time.After(time.Second)
		out.Reset()
		log.Info("again")
		log.Info("again")
		var first, second struct{ Dropped int }
		dec := json.NewDecoder(out)
		if err := dec.Decode(&first); err != nil {
			t.Fatal(err)
		}
		if err := dec.Decode(&second); err != nil {
			t.Fatal(err)
		}
		if first.Dropped != 50 || second.Dropped != 0 {
			t.Errorf("%+v %+v, want 50 and 0", first, second)
		}
		if got := FeedOf(log).Dropped(); got != 50 {
			t.Errorf("%d dropped, want 50", got)
		}
	})
}

// Whatever messages a guest chooses, the limiter's memory is bounded, and so is the number of lines that pass.
func TestLimiter_IsBoundedForAnyMessages(t *testing.T) {
	l := limiter{burst: logBurst, rate: logRate}
	now := time.Unix(0, 0)
	passed := 0
	for i := range 100_000 {
		if ok, _ := l.allow(now, slog.LevelInfo, fmt.Sprint(i)); ok {
			passed++
		}
	}
	if len(l.buckets) > maxMessages+1 || passed > maxMessages+logBurst {
		t.Errorf("%d messages are distinguished, %d lines passed", len(l.buckets), passed)
	}
	if ok, _ := l.allow(now.Add(time.Hour), slog.LevelInfo, "later"); !ok {
		t.Error("an hour later the room is still taken")
	}
}

// With a call of limited before each line, the same lines pass, and all others are counted.
func TestLimiter_DropsIsWhatAllowWouldSay(t *testing.T) {
	asked, plain := limiter{burst: logBurst, rate: logRate}, limiter{burst: logBurst, rate: logRate}
	now := time.Unix(0, 0)
	for i := range 100_000 {
		now = now.Add(time.Duration(rand.IntN(int(4 * time.Millisecond))))
		text := fmt.Sprint(rand.IntN(3))
		wantPass, wantDropped := plain.allow(now, slog.LevelInfo, text)
		pass, dropped := false, uint64(0)
		if !asked.limited(now, slog.LevelInfo, text) {
			pass, dropped = asked.allow(now, slog.LevelInfo, text)
		}
		if pass != wantPass || dropped != wantDropped || asked.dropped() != plain.dropped() {
			t.Fatalf("line %d: %v %d %d, want %v %d %d", i, pass, dropped, asked.dropped(), wantPass, wantDropped, plain.dropped())
		}
	}
	if plain.dropped() == 0 {
		t.Error("no line was dropped")
	}
}

func TestFeed_IsBounded(t *testing.T) {
	f := newFeed(slog.LevelInfo)
	for i := range 3 * maxFeedLines {
		line := strings.Repeat("x", rand.IntN(1000))
		_ = f.add(time.Unix(int64(i), 0), "", func() error {
			_, err := f.line.WriteString(line)
			return err
		})
		if len(f.lines) > maxFeedLines || f.size > maxFeedBytes {
			t.Fatalf("%d lines, %d bytes", len(f.lines), f.size)
		}
	}
	lines, next, _ := f.From(3*maxFeedLines - 2)
	if len(lines) != 2 || next != 3*maxFeedLines || lines[1].Time.Unix() != 3*maxFeedLines-1 {
		t.Errorf("%d lines, next %d", len(lines), next)
	}
	if lines, _, _ := f.From(next); len(lines) != 0 {
		t.Errorf("%+v", lines)
	}
}

func TestHammer_Feed(t *testing.T) {
	log, _ := newFeedLogger()
	ctx, stop := context.WithCancel(t.Context())
	var readers, writers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var next uint64
			for {
				lines, n, more := FeedOf(log).From(next)
				if n < next || uint64(len(lines)) > n-next {
					t.Errorf("from %d: %d lines, next %d", next, len(lines), n)
				}
				next = n
				select {
				case <-more:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for g := range 4 {
		writers.Go(func() {
			for i := range 200 {
				log.Info(fmt.Sprint(g), "object", fmt.Sprint(i))
			}
		})
	}
	writers.Wait()
	stop()
	readers.Wait()
	if _, next, _ := FeedOf(log).From(0); next != 800 {
		t.Errorf("%d lines", next)
	}
}

func TestLineWriter_TextIsTheConsoles(t *testing.T) {
	log, out := newFeedLogger()
	log.Info("reconciled", "object", "a/b", "duration", 1234567*time.Nanosecond, "attempt", 2, "error", "two\nlines", "list", []string{"x"})
	var text bytes.Buffer
	if err := LineWriter(&text, "text")(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(text.String(), " ")
	if diff := cmp.Diff("INFO  reconciled object=a/b duration=1.23ms attempt=2 error=\"two\\nlines\" list=\"[\\\"x\\\"]\"\n", got); diff != "" {
		t.Error(diff)
	}
	if err := LineWriter(&text, "text")([]byte("{")); err == nil {
		t.Error("half a line is no error")
	}
}
