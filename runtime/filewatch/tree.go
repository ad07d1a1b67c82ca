// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// DefaultTreePoll is how often a Tree is scanned without an event.
const DefaultTreePoll = 2 * time.Second

// Tree configures the watch of a folder and everything below it. Path and OnChange are required.
type Tree struct {
	Path string
	// Skip, if not nil, reports whether to ignore a file, or a folder and everything below it, by its name.
	Skip func(name string) bool
	// OnChange is called on the goroutine of Run when a file was changed, added or removed. Changes during the call are reported once,
	// afterwards.
	OnChange func(ctx context.Context)
	// OnError, if not nil, is called once if changes are detected only by polling.
	OnError func(error)
	// Settle is how long the files must be quiet; 0 means DefaultSettle. Poll is how often they are checked without an event; 0 means
	// DefaultTreePoll.
	Settle, Poll time.Duration
}

// Stamp identifies the state of all files of a tree: a hash of their names, sizes and times.
type Stamp [sha256.Size]byte

// Stamp returns the current state. Files that disappear meanwhile are omitted.
func (t Tree) Stamp() (Stamp, error) { return t.walk(func(string) {}) }

// Run watches until ctx ends, and reports changes since a state. It fails if the folder cannot be read.
func (t Tree) Run(ctx context.Context, since Stamp) error {
	t.Settle = cmp.Or(t.Settle, DefaultSettle)
	t.Poll = cmp.Or(t.Poll, DefaultTreePoll)
	l := &loop{settle: t.Settle, poll: t.Poll, onPolling: t.onPolling} // look at once, because the files may have changed before Run
	l.concerns = func(path string) bool { return t.Skip == nil || !t.Skip(filepath.Base(path)) }
	l.look = func(bool) (again bool, err error) {
		now, err := t.walk(l.follow) // including new folders
		if err != nil {
			return false, err
		}
		if now != since {
			since = now
			t.OnChange(ctx)
		}
		return false, nil
	}
	return l.run(ctx)
}

func (t Tree) onPolling(err error) {
	if t.OnError != nil {
		t.OnError(fmt.Errorf("folder[%s]: polling every %v: %w", t.Path, t.Poll, err))
	}
}

// walk hashes each file, and calls folder for each folder.
func (t Tree) walk(folder func(path string)) (Stamp, error) {
	sum := sha256.New()
	err := filepath.WalkDir(t.Path, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && path != t.Path:
			return nil // it has disappeared, or is not readable: the compiler will report that
		case err != nil:
			return err
		case path != t.Path && t.Skip != nil && t.Skip(entry.Name()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			folder(path)
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		_, err = fmt.Fprintf(sum, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		return err
	})
	if err != nil {
		return Stamp{}, fmt.Errorf("folder[%s]: %w", t.Path, err)
	}
	return Stamp(sum.Sum(nil)), nil
}
