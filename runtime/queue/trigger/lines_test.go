// SPDX-License-Identifier: Apache-2.0

package trigger_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/trigger"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// readAll runs Lines on a complete text.
func readAll(t *testing.T, l trigger.Lines) (got []trigger.Trigger, reported []string, err error) {
	t.Helper()
	l.Name = "test"
	l.OnError = func(err error) { reported = append(reported, err.Error()) }
	r := start(t, l)
	<-r.ended
	r.stop()
	return r.triggers(), reported, r.err
}

func named(namespace, name string) trigger.Trigger {
	return trigger.Trigger{Refs: []reflector.ObjectRef{ref(namespace, name)}}
}

func TestLines_OneObjectALine(t *testing.T) {
	text := "a\n\n  ns/b \r\n*\nx/y/z\nlast"
	got, reported, err := readAll(t, trigger.Lines{Reader: strings.NewReader(text), Scope: queue.Scope{Namespace: "own"}})
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]trigger.Trigger{named("own", "a"), named("ns", "b"), {All: true}, named("own", "last")}, got); diff != "" {
		t.Error(diff)
	}
	if len(reported) != 1 || !strings.Contains(reported[0], `lines[test]: line 5: "x/y/z"`) {
		t.Errorf("told %q", reported)
	}
}

func TestLines_ScopeDecides(t *testing.T) {
	got, reported, err := readAll(t, trigger.Lines{Reader: strings.NewReader("node\nns/node\n"), Scope: queue.Scope{ClusterScoped: true}})
	if diff := cmp.Diff([]trigger.Trigger{named("", "node")}, got); diff != "" || len(reported) != 1 || err != nil {
		t.Error(diff, reported, err)
	}
	got, reported, _ = readAll(t, trigger.Lines{Reader: strings.NewReader("a\n")})
	if len(got) != 0 || len(reported) != 1 || !strings.Contains(reported[0], "write namespace/name") {
		t.Errorf("no namespace: got %v, told %q", got, reported)
	}
}

// A line of any length uses bounded memory, and the next one is read.
func TestLines_LongLineIsPassedOver(t *testing.T) {
	long := strings.Repeat("a", 100_000)
	for _, text := range []string{long + "\nns/b\n" + long, strings.Repeat("a", 1026) + "\nns/b\n" + strings.Repeat("a", 1026)} {
		got, reported, err := readAll(t, trigger.Lines{Reader: strings.NewReader(text)})
		if diff := cmp.Diff([]trigger.Trigger{named("ns", "b")}, got); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if len(reported) != 2 || !strings.Contains(reported[0], "is longer than") || !strings.Contains(reported[1], "line 3") {
			t.Errorf("told %q", reported)
		}
	}
}

func TestLines_ErrorOfTheReaderEndsIt(t *testing.T) {
	broken := errors.New("broken")
	got, _, err := readAll(t, trigger.Lines{Reader: io.MultiReader(strings.NewReader("ns/a\n"), iotest.ErrReader(broken))})
	if diff := cmp.Diff([]trigger.Trigger{named("ns", "a")}, got); diff != "" || !errors.Is(err, broken) {
		t.Error(diff, err)
	}
}

// A read that never returns does not prevent Run from returning.
func TestLines_StopDoesNotWaitForTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		r := start(t, trigger.Lines{Reader: reader})
		_, _ = io.WriteString(writer, "ns/a\n")
		synctest.Wait()
		r.end(t)
		if diff := cmp.Diff([]trigger.Trigger{named("ns", "a")}, r.triggers()); diff != "" {
			t.Error(diff)
		}
		_, _ = io.WriteString(writer, "ns/b\n") // the reading goroutine receives it, and ends
		synctest.Wait()
		if n := len(r.triggers()); n != 1 {
			t.Errorf("%d triggers after the end", n)
		}
	})
}

// FuzzLines: nothing panics, and each line is a trigger, an error, or empty.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"a\nb", "*", "ns/a\r\n", "\x00\n\xff", "a/b/c\n\n", strings.Repeat("a", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, reported, err := readAll(t, trigger.Lines{Reader: strings.NewReader(text), Scope: queue.Scope{Namespace: "own"}})
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for l := range strings.SplitSeq(text, "\n") {
			if strings.TrimSpace(l) != "" {
				lines++
			}
		}
		if len(got)+len(reported) != lines {
			t.Fatalf("%q: %d lines, %d triggers, %d errors", text, lines, len(got), len(reported))
		}
		for _, tr := range got {
			if !tr.All && (len(tr.Refs) != 1 || tr.Refs[0].Name == "" || tr.Refs[0].Namespace == "") {
				t.Fatalf("%q: %+v", text, tr)
			}
		}
	})
}
