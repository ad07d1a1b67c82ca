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

// DefaultTreePoll is how often a Tree is looked through without an event.
const DefaultTreePoll = 2 * time.Second

// Tree is a folder and all below it. Path and OnChange are needed.
type Tree struct {
	Path string
	// Skip, if not nil, leaves out a file, or a folder and all below it, by its name.
	Skip func(name string) bool
	// OnChange is notified that a file was changed, added or removed, by the
	// goroutine of Run. Changes meanwhile are reported once, afterwards.
	OnChange func(ctx context.Context)
	// OnError, if not nil, is notified why changes are seen late, once.
	OnError func(error)
	// Settle is how long the files must be quiet; 0 is DefaultSettle. Poll is how
	// often they are checked without an event; 0 is DefaultTreePoll.
	Settle, Poll time.Duration
}

// Stamp is the state of all files of a tree: their names, sizes and times.
type Stamp [sha256.Size]byte

// Stamp returns the present state. Files that vanish meanwhile are left out.
func (t Tree) Stamp() (Stamp, error) { return t.walk(func(string) {}) }

// Run watches until ctx ends, and reports changes since a state. The error says
// that the folder cannot be read.
func (t Tree) Run(ctx context.Context, since Stamp) error {
	t.Settle = cmp.Or(t.Settle, DefaultSettle)
	t.Poll = cmp.Or(t.Poll, DefaultTreePoll)
	l := &loop{settle: t.Settle, poll: t.Poll, onPolling: t.onPolling} // the first look at once: they may have changed before Run
	l.concerns = func(path string) bool { return t.Skip == nil || !t.Skip(filepath.Base(path)) }
	l.look = func(bool) (again bool, err error) {
		now, err := t.walk(l.follow) // also folders that are new
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

// walk checks each file, and reports each folder.
func (t Tree) walk(folder func(path string)) (Stamp, error) {
	sum := sha256.New()
	err := filepath.WalkDir(t.Path, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && path != t.Path:
			return nil // it has vanished, or may not be read: the compiler will say so
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
