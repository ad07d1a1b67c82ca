// Package filewatch tells when the content of a file has changed, however it
// was changed: written in place, replaced by a rename, or behind a symbolic
// link that was switched, as the volumes of ConfigMaps and Secrets do it.
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

// ErrTooLarge is told to File.OnError for a file beyond File.MaxSize.
var ErrTooLarge = errors.New("the file is too large")

// File is a file that is watched. Path and OnChange are needed.
type File struct {
	Path string
	// Content is what is known of the file: what equals it is no change.
	Content []byte
	// Sum, unless zero, stands for Content: the sha256 of what is too large to be
	// kept.
	Sum [sha256.Size]byte
	// OnChange is given the new content, by the goroutine of Run. A missing file
	// counts as unchanged.
	OnChange func(ctx context.Context, content []byte)
	// OnError, if not nil, is notified why the file could not be read, by the
	// goroutine of Run, once until that changes.
	OnError func(error)
	// OnPolling, if not nil, is told once why the operating system does not report
	// changes, such as its limit of watches: the file is then read each Poll.
	OnPolling func(error)
	// Settle is how long the file must be quiet, and its new content stay the
	// same, so that one that is being written is not read half; 0 is DefaultSettle.
	// One that is touched all the time is read after ten times as long.
	Settle time.Duration
	// Poll is how often the file is read without an event: some file systems have
	// none. 0 is DefaultPoll.
	Poll time.Duration
	// MaxSize is how many bytes are read; 0 is not bounded.
	MaxSize int64
}

// Run watches until ctx ends. Where the operating system cannot report changes,
// it reads the file from time to time. The error is about that alone.
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

// watch is one Run.
type watch struct {
	File

	last   [sha256.Size]byte // of the content that OnChange was given, or Content
	next   [sha256.Size]byte // of a new content that was seen once
	failed string            // the last error that was told
	stat   os.FileInfo       // of the file that was read last; nil where it could not be
	again  bool              // the last look has seen a new content once
	places []string          // that events are followed of
}

// loop returns the loop that looks at the file, also at the start: it may have
// changed before Run.
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

// follow asks for the events of the file, and of the links that lead to it: the
// folders in which they are replaced.
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

// look reads the file and reports a change that it has seen twice. It reports
// whether it has to look again.
func (w *watch) look(ctx context.Context) (again bool) {
	h := sha256.New() // the content is of interest, and in memory, only once it is new
	err := w.read(h)
	sum := [sha256.Size]byte(h.Sum(nil))
	var content bytes.Buffer
	if err == nil && sum == w.next && sum != w.last {
		err = w.read(&content)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false // on its way, most probably
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

// complain tells an error that was not the last one told.
func (w *watch) complain(err error) {
	if w.OnError != nil && err.Error() != w.failed {
		w.OnError(err)
	}
	w.failed = err.Error()
}
