// SPDX-License-Identifier: Apache-2.0

// Package progress shows tasks that take longer than a second: on a terminal in a line below the output, which
// disappears when the tasks end, and elsewhere as a line of text from time to time.
package progress

import (
	"context"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"
)

// Times after which a task appears. On a terminal, all tasks appear after soon.
const (
	soon  = time.Second
	every = 10 * time.Second
)

const usualWidth = 80 // of a terminal that does not tell

// Line shows tasks. Its methods are safe for concurrent use, and may be called on a nil Line, which shows nothing.
type Line struct {
	out      io.Writer
	terminal func() (width int) // nil if out is not a terminal

	mu     sync.Mutex
	tasks  []*Task       // the oldest first; guarded by mu
	shown  bool          // the terminal has the line; guarded by mu
	within bool          // the output has begun a line; guarded by mu
	stop   chan struct{} // ends the loop; guarded by mu
	ended  chan struct{} // closed by the loop; guarded by mu
}

// Task is a task in progress. Its methods may be called on a nil Task.
type Task struct {
	line  *Line
	begin time.Time
	done  *atomic.Int64 // nil if nothing is counted
	total int64         // 0 if it is unknown
	unit  Unit

	what string        // guarded by line.mu; empty while there is nothing to show
	next time.Duration // the age at which the task appears outside of terminals; guarded by line.mu
}

// New returns a Line that writes to out. It is a terminal unless TERM is "dumb".
func New(out io.Writer) *Line {
	l := &Line{out: out}
	if f, ok := out.(*os.File); ok && IsTerminal(f) && os.Getenv("TERM") != "dumb" {
		l.terminal = func() int {
			if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 { //nolint:gosec // a file descriptor is small
				return width
			}
			return usualWidth
		}
	}
	return l
}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) } //nolint:gosec // a file descriptor is small

// OnTerminal reports whether the Line is on a terminal.
func (l *Line) OnTerminal() bool { return l != nil && l.terminal != nil }

// Start shows a task after a second, or outside of terminals every ten seconds, until End is called.
func (l *Line) Start(what string) *Task { return l.add(&Task{what: what, next: every}) }

// StartCount is like Start for a task that adds to done until it reaches total. A total of 0 is unknown.
func (l *Line) StartCount(what string, done *atomic.Int64, total int64, unit Unit) *Task {
	return l.add(&Task{what: what, next: every, done: done, total: total, unit: unit})
}

// Wait is like Start for something that others do. It appears after a second, also outside of terminals.
func (l *Line) Wait(what string) *Task { return l.add(&Task{what: what, next: soon}) }

func (l *Line) add(t *Task) *Task {
	if l == nil {
		return nil
	}
	t.line, t.begin = l, time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tasks = append(l.tasks, t); len(l.tasks) == 1 {
		l.stop, l.ended = make(chan struct{}), make(chan struct{})
		go l.run(l.stop, l.ended)
	}
	return t
}

// Say replaces the description of a task. An empty one hides the task.
func (t *Task) Say(what string) {
	if t == nil {
		return
	}
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	t.what = what
}

// End ends a task. The line has disappeared when it returns.
func (t *Task) End() {
	if t == nil {
		return
	}
	l := t.line
	l.mu.Lock()
	l.tasks = slices.DeleteFunc(l.tasks, func(o *Task) bool { return o == t })
	l.clear()
	var ended chan struct{}
	if len(l.tasks) == 0 {
		close(l.stop)
		ended = l.ended
	}
	l.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// Await calls look at an interval until it returns an empty stage or an error, or ctx ends. Meanwhile, it shows what look waits for; each
// stage is a task of its own.
func (l *Line) Await(ctx context.Context, interval time.Duration, look func(context.Context) (stage, what string, err error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last string
	var task *Task // of the last stage
	defer func() { task.End() }()
	for {
		stage, what, err := look(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil || stage == "":
			return err
		case stage != last:
			task.End()
			last, task = stage, l.Wait(what)
		default:
			task.Say(what)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run shows the tasks until stop is closed.
func (l *Line) run(stop, ended chan struct{}) {
	defer close(ended)
	tick := time.NewTicker(frameTime)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			l.mu.Lock()
			if l.terminal != nil {
				l.draw(now)
			} else {
				l.report(now)
			}
			l.mu.Unlock()
		}
	}
}

// draw draws the oldest task. The caller must hold mu.
func (l *Line) draw(now time.Time) {
	visible := slices.DeleteFunc(slices.Clone(l.tasks), func(t *Task) bool { return t.what == "" || now.Sub(t.begin) < soon })
	if len(visible) == 0 || l.within {
		l.clear()
		return
	}
	s := visible[0].state(now)
	s.others = len(visible) - 1
	l.shown = true
	_, _ = io.WriteString(l.out, "\r\x1b[K"+s.line(l.terminal())) // the output is gone
}

// report writes the tasks that are due. The caller must hold mu.
func (l *Line) report(now time.Time) {
	for _, t := range l.tasks {
		if age := now.Sub(t.begin); t.what != "" && age >= t.next {
			t.next = age + every
			s := t.state(now)
			_, _ = io.WriteString(l.out, s.text()+"\n") // the output is gone
		}
	}
}

func (t *Task) state(now time.Time) *state {
	s := &state{what: t.what, took: now.Sub(t.begin), total: t.total, unit: t.unit}
	if t.done != nil {
		s.done = t.done.Load()
	}
	return s
}

// clear removes the line. The caller must hold mu.
func (l *Line) clear() {
	if l.shown {
		l.shown = false
		_, _ = io.WriteString(l.out, "\r\x1b[K") // the output is gone
	}
}

// Writer is an output on the same terminal as a Line.
type Writer struct {
	line *Line
	file *os.File
}

// Above returns a writer to w that removes the line before it writes. It returns w if no line can be in its way.
func (l *Line) Above(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok && l.OnTerminal() && IsTerminal(f) {
		return &Writer{l, f}
	}
	return w
}

// File returns the terminal.
func (w *Writer) File() *os.File { return w.file }

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) {
	l := w.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	if len(b) > 0 {
		l.within = b[len(b)-1] != '\n' // the line appears again after the end of this one
	}
	return w.file.Write(b)
}
