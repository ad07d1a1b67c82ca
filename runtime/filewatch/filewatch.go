// SPDX-License-Identifier: Apache-2.0

// Package filewatch detects changes of the content of a file, however they are made: written in place, replaced by a rename, or by
// switching a symbolic link, as volumes of ConfigMaps and Secrets do.
package filewatch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Defaults of File.
const (
	DefaultSettle = 100 * time.Millisecond
	DefaultPoll   = 10 * time.Second
)

// ErrTooLarge is passed to File.OnError for a file larger than File.MaxSize.
var ErrTooLarge = errors.New("the file is too large")

// File configures the watch of a file. Path and OnChange are required.
type File struct {
	Path string
	// Content is the known content of the file: only a different content is a change.
	Content []byte
	// Sum, unless zero, replaces Content: it is the sha256 of a content that is too large to be retained.
	Sum [sha256.Size]byte
	// OnChange is called with the new content, on the goroutine of Run. A missing file counts as unchanged.
	OnChange func(ctx context.Context, content []byte)
	// OnError, if not nil, is called on the goroutine of Run when the file cannot be read, once until the error changes.
	OnError func(error)
	// OnPolling, if not nil, is called once if the operating system does not report changes, for example because of its limit of watches:
	// the file is then read every Poll.
	OnPolling func(error)
	// Settle is how long the file must be quiet and its new content stay the same, so that a partially written file is not used; 0 means
	// DefaultSettle. A file that changes continuously is read after ten times as long.
	Settle time.Duration
	// Poll is how often the file is read without an event, because some file systems report none. 0 means DefaultPoll.
	Poll time.Duration
	// MaxSize is the maximum file size in bytes; 0 means no limit.
	MaxSize int64
}

// Run watches until ctx ends. If the operating system cannot report changes, Run polls the file.
func (f File) Run(ctx context.Context) error {
	f.Settle = cmp.Or(f.Settle, DefaultSettle)
	f.Poll = cmp.Or(f.Poll, DefaultPoll)
	w := &watch{File: f, last: f.Sum}
	if f.Sum == (watch{}).last {
		w.last = sha256.Sum256(f.Content)
	}
	l := w.loop(ctx)
	l.onPolling = func(err error) {
		if f.OnPolling != nil {
			f.OnPolling(fmt.Errorf("file[%s]: polling every %v: %w", f.Path, f.Poll, err))
		}
	}
	return l.run(ctx)
}

// watch is the state of one call of Run.
type watch struct {
	File

	last   [sha256.Size]byte // of the last content passed to OnChange, or of Content
	next   [sha256.Size]byte // of a new content that was seen once
	failed string            // the last reported error
	stat   os.FileInfo       // of the file that was read last; nil if it could not be read
	again  bool              // the last look saw a new content for the first time
	places []string          // the paths whose events are relevant
}

// loop returns the loop that looks at the file. It also looks at the start, because the file may have changed before Run.
func (w *watch) loop(ctx context.Context) *loop {
	l := &loop{first: w.Settle, settle: w.Settle, poll: w.Poll}
	l.concerns = func(path string) bool { return slices.Contains(w.places, filepath.Clean(path)) }
	l.look = func(polled bool) (again bool, err error) {
		if polled && !w.again && w.untouched() {
			return false, nil
		}
		w.follow(l)
		w.again = w.look(ctx)
		return w.again, nil
	}
	return l
}

// follow subscribes to events of the file and of the links that lead to it, through their folders.
func (w *watch) follow(l *loop) {
	w.places = places(w.Path)
	for _, path := range w.places {
		l.follow(filepath.Dir(path))
	}
}

// untouched reports whether the file is the one that was read last, by its inode,
// size and time.
func (w *watch) untouched() bool {
	now, err := os.Stat(w.Path)
	return err == nil && w.stat != nil && os.SameFile(now, w.stat) && now.Size() == w.stat.Size() && now.ModTime().Equal(w.stat.ModTime())
}

// look reads the file and reports a change once it has seen it twice. It reports whether it must look again.
func (w *watch) look(ctx context.Context) (again bool) {
	h := sha256.New() // untouched reports whether the file has the inode, size and time of the file that was read last.
	err := w.read(h)
	sum := [sha256.Size]byte(h.Sum(nil))
	var content bytes.Buffer
	if err == nil && sum == w.next && sum != w.last {
		err = w.read(&content)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false // the file is probably being replaced
	case err != nil:
		w.complain(fmt.Errorf("file[%s]: %w", w.Path, err))
		return false
	}
	w.failed = ""
	switch sum {
	case w.last:
		return false
	case w.next:
		if sum = sha256.Sum256(content.Bytes()); sum == w.next {
			w.last = sum
			w.OnChange(ctx, content.Bytes())
			return false
		}
	}
	w.next = sum
	return true
}

// read writes the content of the file to out.
func (w *watch) read(out io.Writer) error {
	w.stat = nil
	file, err := os.Open(w.Path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	if w.stat, err = file.Stat(); err != nil {
		return err
	}
	var in io.Reader = file
	if w.MaxSize > 0 {
		in = io.LimitReader(file, w.MaxSize+1)
	}
	n, err := io.Copy(out, in)
	if err == nil && w.MaxSize > 0 && n > w.MaxSize {
		err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, w.MaxSize)
	}
	return err
}

// complain reports an error unless it is the same as the last one.
func (w *watch) complain(err error) {
	if w.OnError != nil && err.Error() != w.failed {
		w.OnError(err)
	}
	w.failed = err.Error()
}
