package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// newFeedLogger returns a logger of a controller, and what the process's log
// gets of it.
func newFeedLogger() (*slog.Logger, *bytes.Buffer) {
	var out bytes.Buffer
	p := &process{log: slog.New(leveled{slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: allLevels}), slog.LevelInfo})}
	return p.controllerLog(), &out
}

func TestFeed_LevelIsTheControllersOwn(t *testing.T) {
	log, out := newFeedLogger()
	other, _ := newFeedLogger()
	log.Debug("unheard")
	feedOf(log).level.Set(slog.LevelDebug)
	log.With("object", "a/b").Debug("heard")
	if other.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("another controller logs at debug too")
	}
	if got := out.String(); strings.Contains(got, "unheard") || !strings.Contains(got, `"msg":"heard","object":"a/b"`) {
		t.Error(got)
	}
	lines, next, _ := feedOf(log).from(0)
	if len(lines) != 1 || next != 1 || lines[0].object != "a/b" || string(lines[0].json) != out.String() {
		t.Errorf("%+v", lines)
	}
}

// Of a message that comes too often the rest is dropped, and counted in the next
// line that passes; other messages are not touched.
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
		if got := feedOf(log).limiter.droppedLines(); got != 50 {
			t.Errorf("%d dropped, want 50", got)
		}
	})
}

// However a guest chooses its messages, the limiter's memory is bounded, and so
// is what passes.
func TestLimiter_IsBoundedForAnyMessages(t *testing.T) {
	var l limiter
	now := time.Unix(0, 0)
	passed := 0
	for i := range 100_000 {
		if ok, _ := l.allow(now, slog.LevelInfo, fmt.Sprint(i)); ok {
			passed++
		}
	}
	if len(l.buckets) > maxMessages+1 || passed > maxMessages+logBurst {
		t.Errorf("%d messages are told apart, %d lines passed", len(l.buckets), passed)
	}
	if ok, _ := l.allow(now.Add(time.Hour), slog.LevelInfo, "later"); !ok {
		t.Error("an hour later the room is still taken")
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
	lines, next, _ := f.from(3*maxFeedLines - 2)
	if len(lines) != 2 || next != 3*maxFeedLines || lines[1].time.Unix() != 3*maxFeedLines-1 {
		t.Errorf("%d lines, next %d", len(lines), next)
	}
	if lines, _, _ := f.from(next); len(lines) != 0 {
		t.Errorf("%+v", lines)
	}
}

func TestHammer_Feed(t *testing.T) {
	log, _ := newFeedLogger()
	feedOf(log).limiter = limiter{}
	ctx, stop := context.WithCancel(t.Context())
	var readers, writers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var next uint64
			for {
				lines, n, more := feedOf(log).from(next)
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
	if _, next, _ := feedOf(log).from(0); next != 800 {
		t.Errorf("%d lines", next)
	}
}

func TestLineWriter_TextIsTheConsoles(t *testing.T) {
	log, out := newFeedLogger()
	log.Info("reconciled", "object", "a/b", "duration", 1234567*time.Nanosecond, "attempt", 2, "error", "two\nlines", "list", []string{"x"})
	var text bytes.Buffer
	if err := lineWriter(&text, "text")(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(text.String(), " ")
	if diff := cmp.Diff("INFO  reconciled object=a/b duration=1.23ms attempt=2 error=\"two\\nlines\" list=\"[\\\"x\\\"]\"\n", got); diff != "" {
		t.Error(diff)
	}
	if err := lineWriter(&text, "text")([]byte("{")); err == nil {
		t.Error("half a line is no error")
	}
}

// TestLogs_OfARunningController: its lines, of one object, as they come; and its
// level, changed while it runs.
func TestLogs_OfARunningController(t *testing.T) {
	t.Parallel()
	f, socket := newFleet(t, devclustertest.Shared(t)), newSocket(t)
	f.put(t.Context(), "a", app{image: "i:1"})
	f.put(t.Context(), "b", app{image: "i:1"})
	c := f.start("--socket", socket)
	f.confirm()
	c.wantLine(`"msg":"reconciled"`, `"object":"`+f.ns+`/b"`)
	text := steer(t, "logs", socket, "webapp", "--object", f.ns+"/a")
	if !strings.Contains(text, "reconciled object="+f.ns+"/a") || strings.Contains(text, f.ns+"/b") {
		t.Errorf("of one object:\n%s", text)
	}
	if text := steer(t, "logs", socket, "webapp", "--tail", "1", "-o", "json"); strings.Count(text, "\n") != 1 || !json.Valid([]byte(text)) {
		t.Errorf("the last line:\n%s", text)
	}
	if got := steer(t, "log-level", socket, "webapp"); got != "info\n" {
		t.Errorf("the level is %q", got)
	}
	steer(t, "log-level", socket, "webapp", "error")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	first := make(chan string, 1)
	go func() {
		_ = admin.NewClient(socket).Logs(ctx, "webapp", admin.LogQuery{Follow: true, Tail: 0}, func(line []byte) error {
			first <- string(line)
			return fmt.Errorf("enough")
		})
	}()
	f.put(t.Context(), "a", app{image: "i:2"})
	f.confirm() // nothing is logged of it
	steer(t, "log-level", socket, "webapp", "debug")
	select {
	case line := <-first:
		if !strings.Contains(line, "log level changed") {
			t.Errorf("at level error something was logged: %s", line)
		}
	case <-time.After(waitLimit):
		t.Error("nothing comes")
	}
	c.signal(syscall.SIGTERM)
	c.wantExit(exitOK)
}
