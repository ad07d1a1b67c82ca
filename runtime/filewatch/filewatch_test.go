// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// watched runs a File until the test ends.
func watched(t *testing.T, f File) (changes <-chan string, errs <-chan error) {
	t.Helper()
	c, e := make(chan string, 100), make(chan error, 100)
	f.OnChange = func(_ context.Context, content []byte) { c <- string(content) }
	f.OnError = func(err error) { e <- err }
	if f.Settle == 0 {
		f.Settle = 50 * time.Millisecond
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c, e
}

// want waits for a content. If the machine stops between the two steps of os.WriteFile, the file is empty for as long
// as it takes to settle.
func want(t *testing.T, changes <-chan string, content string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case got := <-changes:
			if got == content {
				return
			}
			if got != "" {
				t.Fatalf("content %q, want %q", got, content)
			}
		case <-limit:
			t.Fatalf("no change to %q", content)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// disables polling, which would hide a lost event.
const never = 24 * time.Hour

func TestFile_EachWayToChangeItIsSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "one")
	changes, _ := watched(t, File{Path: path, Content: []byte("one"), Poll: never})
	write(t, path, "two")
	want(t, changes, "two")
	write(t, path+".new", "three")
	rename(t, path+".new", path)
	want(t, changes, "three")
	if err := os.Remove(path); err != nil { // it disappears for a moment
		t.Fatal(err)
	}
	write(t, path, "four")
	want(t, changes, "four")
	write(t, path, "four") // nothing new, and therefore nothing to report
	write(t, path+".other", "another file")
	write(t, path, "five")
	want(t, changes, "five")
}

// The volume of a ConfigMap: file -> ..data/file, and ..data is a link that is switched from one folder to the next.
func TestFile_LinkThatIsSwitched(t *testing.T) {
	dir := t.TempDir()
	link := func(target string) {
		tmp := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(target, tmp); err != nil {
			t.Fatal(err)
		}
		rename(t, tmp, filepath.Join(dir, "..data"))
	}
	for name, content := range map[string]string{"..1": "one", "..2": "two"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "f"), content)
	}
	link("..1")
	path := filepath.Join(dir, "f")
	if err := os.Symlink("..data/f", path); err != nil {
		t.Fatal(err)
	}
	changes, _ := watched(t, File{Path: path, Content: []byte("one"), Poll: never})
	link("..2")
	want(t, changes, "two")
	link("..1")
	want(t, changes, "one")
	write(t, filepath.Join(dir, "..1", "f"), "one, in place")
	want(t, changes, "one, in place")
}

func TestFile_ChangeBeforeRunIsSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "newer")
	changes, _ := watched(t, File{Path: path, Content: []byte("older"), Poll: never})
	want(t, changes, "newer")
}

// Without events, the file is polled; this also finds a folder that is created later.
func TestFile_PollFindsWhatHasNoEvents(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	changes, _ := watched(t, File{Path: filepath.Join(dir, "f"), Poll: 20 * time.Millisecond})
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "f"), "here")
	want(t, changes, "here")
}

func TestFile_WhatCannotBeReadIsToldOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "ok")
	changes, errs := watched(t, File{Path: path, Content: []byte("ok"), Poll: 10 * time.Millisecond, MaxSize: 5})
	write(t, path, "too long")
	select {
	case err := <-errs:
		if !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody was told")
	}
	write(t, path, "short")
	want(t, changes, "short")
	if len(errs) > 0 {
		t.Errorf("told again: %v", <-errs)
	}
}

// TestFile_WithoutAChangeItIsNotInMemory: checking a large file for changes does not take memory of its size.
func TestFile_WithoutAChangeItIsNotInMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	const size = 32 << 20
	write(t, path, strings.Repeat("x", size))
	w := &watch{File: File{Path: path, MaxSize: size}}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w.last = sha256.Sum256(content)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if w.look(t.Context()) {
		t.Error("it counts as changed")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > size/8 {
		t.Errorf("a look took %d bytes", took)
	}
}
