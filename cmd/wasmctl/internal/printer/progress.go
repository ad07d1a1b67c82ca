// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Progress is a writer that shows long tasks on a terminal, in a line below the output. It removes
// the line when the task ends. On other outputs, it only writes.
type Progress struct {
	mu       sync.Mutex
	w        io.Writer
	commands io.Writer // the terminal for commands; nil if there is none
	tasks    []*task   // guarded by mu
	shown    bool      // the line is visible; guarded by mu
}

// task is a long task.
type task struct {
	what  string
	since time.Time
}

// NewProgress returns a Progress that writes to w.
func NewProgress(w io.Writer) *Progress {
	p := &Progress{w: w}
	if s := ScreenOf(w); s.width > 0 && os.Getenv("TERM") != "dumb" {
		p.commands = s.w
	}
	return p
}

// Write implements io.Writer.
func (p *Progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	return p.w.Write(b) // the line appears again within a second
}

// Start shows a task, beginning one second later, until end is called.
func (p *Progress) Start(what string) (end func()) {
	if p.commands == nil {
		return func() {}
	}
	t := &task{what, time.Now()}
	p.mu.Lock()
	p.tasks = append(p.tasks, t)
	p.mu.Unlock()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.show()
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, o := range p.tasks {
			if o == t {
				p.tasks = append(p.tasks[:i], p.tasks[i+1:]...)
				break
			}
		}
		p.clear()
	}
}

// show shows the oldest task, and the number of others.
func (p *Progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.tasks[0]
	line := fmt.Sprintf("%s, %v", first.what, time.Since(first.since).Truncate(time.Second))
	if others := len(p.tasks) - 1; others > 0 {
		line += fmt.Sprintf(", and %d more", others)
	}
	p.shown = true
	_, _ = io.WriteString(p.commands, "\r\x1b[K"+line)
}

// clear removes the line. The caller must hold mu.
func (p *Progress) clear() {
	if p.shown {
		p.shown = false
		_, _ = io.WriteString(p.commands, "\r\x1b[K")
	}
}
