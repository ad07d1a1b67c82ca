// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestLoop_PollingIsReportedOnce, however many folders cannot be watched, and however often that is tried.
func TestLoop_PollingIsReportedOnce(t *testing.T) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	if err := events.Close(); err != nil { // it no longer subscribes to anything
		t.Fatal(err)
	}
	reported := 0
	l := &loop{add: events.Add, onPolling: func(error) { reported++ }}
	for range 3 {
		l.follow(t.TempDir())
	}
	if reported != 1 {
		t.Errorf("told %d times, want once", reported)
	}
}

// flooded runs the loop of a file in virtual time, with events from the test.
func flooded(t *testing.T, path string, poll time.Duration) (events chan<- fsnotify.Event, changes *[]string) {
	t.Helper()
	changes = &[]string{}
	w := &watch{File: File{
		Path: path, Settle: DefaultSettle, Poll: poll,
		OnChange: func(_ context.Context, content []byte) { *changes = append(*changes, string(content)) },
	}}
	l, source := w.loop(t.Context()), make(chan fsnotify.Event)
	l.events, l.add = source, func(string) error { return nil }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.watch(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	time.Sleep(time.Second) //nolint:forbidigo // virtual time
	return source, changes
}

// Neither writes next to the file nor continuous changes of the file itself prevent its changes from being noticed.
func TestFile_FloodOfEventsDelaysNothing(t *testing.T) {
	for name, flood := range map[string]string{"beside it": "log", "of the file": "f"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "f")
				write(t, path, "one")
				events, changes := flooded(t, path, time.Hour)
				write(t, path, "two")
				events <- fsnotify.Event{Name: path, Op: fsnotify.Write}
				for range 300 { // 3 s
					time.Sleep(10 * time.Millisecond) //nolint:forbidigo // virtual time
					events <- fsnotify.Event{Name: filepath.Join(dir, flood), Op: fsnotify.Write}
				}
				if !slices.Equal(*changes, []string{"one", "two"}) {
					t.Errorf("changes %q", *changes)
				}
			})
		})
	}
}

// A poll confirms a content that a look has seen once, however many events come in between.
func TestFile_PollConfirmsWhatWasSeenOnce(t *testing.T) {
	w := &watch{File: File{Path: filepath.Join(t.TempDir(), "f")}}
	var seen []string
	w.OnChange = func(_ context.Context, content []byte) { seen = append(seen, string(content)) }
	write(t, w.Path, "new")
	l := w.loop(t.Context())
	for range 3 {
		if _, err := l.look(true); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(seen, []string{"new"}) {
		t.Errorf("changes %q", seen)
	}
}

func TestPlaces_EachLinkAndTheFile(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"data": "1", "f": "data/f", "abs": at("f"), "a": "b", "b": "a"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][]string{
		at("f"):      {at("f"), at("data"), at("1/f")},
		at("abs"):    {at("abs"), at("f"), at("data"), at("1/f")},
		at("none/x"): {at("none/x")},
	} {
		if got := places(path); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := places(at("a")); len(got) != maxLinks+1 {
		t.Errorf("a circle has %d places", len(got))
	}
}
