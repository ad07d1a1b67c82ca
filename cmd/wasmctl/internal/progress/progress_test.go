// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"
)

// TestState_IsTextAndLine: the text and the line for a terminal of 60 columns.
func TestState_IsTextAndLine(t *testing.T) {
	for _, c := range []struct {
		state      state
		text, line string
	}{
		{state{what: "building .", took: 3400 * time.Millisecond}, "building ., 3s", "- building ., 3s"},
		{state{what: "building .", took: 3300 * time.Millisecond, others: 2}, "building ., 3s, and 2 more", "/ building ., 3s, and 2 more"},
		{state{what: "testing", took: time.Minute, done: 3, total: 12, unit: Cases}, "testing: 3 of 12 cases, 1m0s", "[#####...............] testing: 3 of 12 cases, 1m0s"},
		{state{what: "testing", done: 13, total: 12, unit: Cases}, "testing: 12 of 12 cases, 0s", "[####################] testing: 12 of 12 cases, 0s"},
		{state{what: "listing pods", took: time.Second, done: 12000, unit: Objects}, "listing pods: 12000 objects so far, 1s", "- listing pods: 12000 objects so far, 1s"},
		{state{what: "pulling", took: time.Second, done: 3 << 20, unit: Bytes}, "pulling: 3Mi so far, 1s", "- pulling: 3Mi so far, 1s"},
		{state{what: "evil \x1b[2J\nline"}, `evil \u001b[2J\nline, 0s`, `| evil \u001b[2J\nline, 0s`},
		{state{what: strings.Repeat("long ", 20)}, strings.Repeat("long ", 20) + ", 0s", "| " + strings.Repeat("long ", 20)[:52] + "…, 0s"},
	} {
		if diff := cmp.Diff([]string{c.text, c.line}, []string{c.state.text(), c.state.line(60)}); diff != "" {
			t.Error(diff)
		}
	}
}

// TestLine_NeverWraps: no line is wider than the terminal, whatever its width.
func TestLine_NeverWraps(t *testing.T) {
	s := state{what: "pulling oci://registry.example/日本語", took: time.Hour, done: 1, total: 3, unit: Bytes}
	for width := range 120 {
		if n := runewidth.StringWidth(s.line(width)); n > max(0, width-1) {
			t.Errorf("a terminal of %d columns: %d", width, n)
		}
	}
}

const clear = "\r\x1b[K"

// TestLine_IsOneLineOnATerminal: a task appears after a second, before the output and at the end it disappears, and
// while the output has begun a line it does not appear.
func TestLine_IsOneLineOnATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, file := pipe(t)
		l := &Line{out: out, terminal: func() int { return 80 }}
		w := &Writer{l, file}
		write := func(s string) {
			if _, err := io.WriteString(w, s); err != nil {
				t.Error(err)
			}
		}
		written := func() string { // since the last call
			l.mu.Lock()
			defer l.mu.Unlock()
			defer out.Reset()
			return out.String()
		}
		task, other := l.Start("compiling"), l.Start("checking")
		<-time.After(950 * time.Millisecond)
		if got := written(); got != "" {
			t.Errorf("a short task appeared: %q", got)
		}
		<-time.After(100 * time.Millisecond)
		if got := written(); got != clear+"/ compiling, 1s, and 1 more" && got != clear+"- compiling, 1s, and 1 more" {
			t.Errorf("after a second: %q", got)
		}
		write("log without its end")
		<-time.After(time.Second)
		if got := written(); got != clear {
			t.Errorf("within a line: %q", got)
		}
		write("\n")
		task.Say("")
		<-time.After(time.Second)
		if got := written(); !strings.Contains(got, "checking, 3s") || strings.Contains(got, "compiling") {
			t.Errorf("the other task: %q", got)
		}
		task.End()
		other.End()
		if got := written(); !strings.HasSuffix(got, clear) {
			t.Errorf("it remains: %q", got)
		}
		<-time.After(time.Minute)
		if got := written(); got != "" {
			t.Errorf("after the end: %q", got)
		}
	})
}

// TestLine_IsALineOfTextNowAndThenElsewhere: outside of terminals, a task of the command appears every ten seconds, and
// a wait for others after a second, without terminal commands.
func TestLine_IsALineOfTextNowAndThenElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := New(&out)
		var done atomic.Int64
		task, wait := l.StartCount("testing", &done, 30, Cases), l.Wait("waiting for the end of the probation")
		<-time.After(15 * time.Second)
		done.Store(7)
		<-time.After(5550 * time.Millisecond) // between two ticks
		task.End()
		wait.End()
		<-time.After(time.Minute)
		want := "waiting for the end of the probation, 1s\ntesting: 0 of 30 cases, 10s\nwaiting for the end of the probation, 11s\ntesting: 7 of 30 cases, 20s\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
		if l.Above(&out) != &out {
			t.Error("an output that is no terminal needs no other writer")
		}
	})
}

// TestLine_AwaitShowsEachStage until there is none, and ends with an error or its context.
func TestLine_AwaitShowsEachStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l, begin, broken := New(&out), time.Now(), errors.New("broken")
		look := func(context.Context) (stage, what string, err error) {
			switch age := time.Since(begin); {
			case age < 5*time.Second:
				return "canary", "canary: " + age.String(), nil
			case age < 15*time.Second:
				return "probation", "probation", nil
			}
			return "", "", nil
		}
		if err := l.Await(t.Context(), time.Second, look); err != nil || time.Since(begin) != 15*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if got := strings.Split(out.String(), "\n"); len(got) != 3 || !strings.HasPrefix(got[0], "canary: ") || got[1] != "probation, 1s" {
			t.Errorf("%q", got)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, broken)
		defer cancel()
		for name, look := range map[string]func(context.Context) (string, string, error){
			"an error":         func(context.Context) (string, string, error) { return "", "", broken },
			"an ended context": func(ctx context.Context) (string, string, error) { return "x", "x", ctx.Err() },
			"an ended look":    func(ctx context.Context) (string, string, error) { <-ctx.Done(); return "", "", ctx.Err() },
		} {
			if err := (*Line)(nil).Await(ctx, time.Second, look); !errors.Is(err, broken) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestLine_MayBeNil: a command without a Line shows nothing.
func TestLine_MayBeNil(*testing.T) {
	var l *Line
	task := l.Start("nothing")
	task.Say("more")
	task.End()
	l.Wait("nothing").End()
}

// TestLine_Hammer starts and ends tasks while others write.
func TestLine_Hammer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, file := pipe(t)
		l := &Line{out: out, terminal: func() int { return 80 }}
		w := &Writer{l, file}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					task := l.Start("working")
					<-time.After(time.Duration(1+len("working")) * 300 * time.Millisecond)
					if _, err := io.WriteString(w, "x\n"); err != nil {
						t.Error(err)
					}
					task.End()
				}
			})
		}
		wg.Wait()
		if l.shown || len(l.tasks) > 0 {
			t.Error("something remains")
		}
	})
}

// pipe returns a buffer for commands, and a file for output.
func pipe(t *testing.T) (*bytes.Buffer, *os.File) {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &bytes.Buffer{}, f
}
